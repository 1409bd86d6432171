/**
 * The deletion of a background response removes all its data, even while its end is being stored or a store is down.
 */
import { expect, test } from "bun:test";
import type { Call } from "../../../src/core/http/call.ts";
import { followCancels } from "../../../src/features/responses/background.ts";
import { deleteResponse } from "../../../src/features/responses/operations.ts";
import { codeOf, endedRun, name, needsOf, openAnswer } from "../../core/http/keeping-parts.ts";
import { until } from "../../harness/until.ts";

const id = `resp_${"0".repeat(32)}`;
const principal = { organization: { id: name.organizationId, keepsContent: true }, person: null };

/** A background response that is complete, but not yet in the store of responses. */
function completed() {
  const kept = openAnswer({ state: "ended", responseId: id, response: JSON.stringify({ id, status: "completed" }) });
  const it = {
    row: true,
    log: true,
    stored: new Set<string>(),
    isSettled: false,
    looks: 0,
    isAway: false,
    delete: async () => deleteResponse.handle(dependencies, {} as Call, { principal, params: { id } } as never),
  };
  const answers = {
    response: async () => (it.row ? kept : null),
    free: async () => {
      it.row = false;
    },
  };
  const remove = async () => {
    if (it.isAway) throw new Error("Redis is away");
    it.log = false;
  };
  const receipt = () => {
    it.looks += 1;
    return { ...endedRun(5), ...(it.isSettled ? {} : { endedAt: null }) };
  };
  const store = { remove: async () => it.stored.delete(id) };
  const dependencies = { ...needsOf({ answers, logs: { remove } }, receipt), responses: { store } } as never;
  return it;
}

test("one that is complete, and is deleted before it is stored, stays deleted", async () => {
  const it = completed();
  let isOver = false;
  const deleting = it.delete().finally(() => {
    isOver = true;
  });
  await until(() => it.looks > 0 || isOver, 2_000, "a look whether the run is settled");
  it.stored.add(id);
  it.isSettled = true;
  expect(await deleting).toMatchObject({ status: 200 });
  expect([it.row, it.log, [...it.stored]]).toEqual([false, false, []]);
});

test("one that runs on another node is cancelled there, although that node looks only when its row is gone", async () => {
  const rows = new Set(["req_runs"]);
  const cancelled: string[] = [];
  const running = (requestId: string, hasBegun = true) => ({
    ...{ requestId, hasBegun },
    cancel: () => void cancelled.push(requestId),
  });
  const answers = { open: async (ids: readonly string[]) => ids.filter((one) => rows.has(one)) };
  const open = new Set([running("req_runs"), running("req_deleted"), running("req_claims", false)]);
  await followCancels(needsOf({ answers, open }).kept);
  expect(cancelled).toEqual(["req_deleted"]);
});

test("while the store of its log is away, its row stays, which names the log, and it can be deleted later", async () => {
  const it = completed();
  it.isSettled = true;
  it.isAway = true;
  expect(await codeOf(it.delete())).toBe("storage_unavailable");
  expect([it.row, it.log]).toEqual([true, true]);
  it.isAway = false;
  await it.delete();
  expect([it.row, it.log]).toEqual([false, false]);
});
