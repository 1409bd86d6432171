/**
 * A background response is reported as completed only once it is stored, so a client that sees its end can continue
 * from it.
 */
import { expect, test } from "bun:test";
import type { Call } from "../../../src/core/http/call.ts";
import { cancelResponse, getResponse } from "../../../src/features/responses/operations.ts";
import { endedRun, name, needsOf, openAnswer } from "../../core/http/keeping-parts.ts";
import { until } from "../../harness/until.ts";

const id = `resp_${"0".repeat(32)}`;
const principal = { organization: { id: name.organizationId, keepsContent: true }, person: null };

test.each([
  ["fetched", getResponse, "completed"],
  ["fetched", getResponse, "incomplete"],
  ["cancelled", cancelResponse, "completed"],
] as const)("one that is %s while it is being stored, %#", async (_, operation, status) => {
  let isSettled = false;
  let looks = 0;
  const kept = openAnswer({ state: "ended", responseId: id, response: JSON.stringify({ id, status }) });
  const receipt = () => {
    looks += 1;
    return { ...endedRun(5), ...(isSettled ? {} : { endedAt: null }) };
  };
  const dependencies = {
    ...needsOf({ answers: { response: async () => kept } }, receipt),
    responses: { store: { find: async () => null } },
  };
  let isTold = false;
  const asked = { principal, params: { id }, query: {} };
  const telling = (async () => operation.handle(dependencies as never, {} as Call, asked as never))().finally(() => {
    isTold = true;
  });
  await until(() => looks > 0 || isTold, 2_000, "a look whether the run is settled");
  // The settlement of the request comes after the response was stored, and is still missing.
  expect(isTold).toBe(false);
  isSettled = true;
  expect(await ((await telling) as Response).json()).toMatchObject({ id, status });
});
