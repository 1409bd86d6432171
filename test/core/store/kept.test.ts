// Answers that are stored for later reads, and the claims of idempotency keys, on both kinds of database.

import { beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { idOf } from "../../../src/core/store/ids.ts";
import type { KeptAnswers, NewKept } from "../../../src/features/responses/store/kept.ts";
import { databaseLogs } from "../../../src/stores/postgres/answer-log.ts";
import { keptAnswers } from "../../../src/stores/postgres/kept.ts";
import { ledger } from "../../../src/stores/postgres/ledger.ts";
import { databaseKinds } from "../../harness/depth.ts";
import { admitOf, ledgerForTests, newRequestId, settleOf } from "./ledger-stores.ts";

setDefaultTimeout(60_000);

const hash = (text: string) => new Bun.CryptoHasher("sha256").update(text).digest("hex");
const newResponseId = () => idOf(Bun.randomUUIDv7(), "resp_");

describe.each(databaseKinds(import.meta.path))("kept answers on %s", (name) => {
  const { store } = ledgerForTests(name, { isBalanced: false });
  let kept: KeptAnswers;
  let another: KeptAnswers;
  let organizationId: string;
  let hours = 24;
  beforeAll(async () => {
    kept = keptAnswers(store.db, { kept_hours: () => hours });
    another = keptAnswers(await store.another(), { kept_hours: () => hours });
  });
  beforeEach(async () => {
    hours = 24;
    organizationId = await store.newOrganization();
  });

  const of = (key: string | null, change: Partial<NewKept> = {}): NewKept => ({
    requestId: newRequestId(),
    organizationId,
    claim: key === null ? null : { key: hash(organizationId + key), body: hash("body") },
    ...change,
  });
  const begun = async (one: NewKept) => {
    expect(await kept.begin(one)).toBe("begun");
    return one;
  };

  test("of many that come with one key at once, one begins, and the others find it", async () => {
    const all = Array.from({ length: 12 }, () => of("a"));
    const answers = await Promise.all(all.map((one, index) => (index % 2 ? kept : another).begin(one)));
    const winners = all.filter((_, index) => answers[index] === "begun");
    expect(winners).toHaveLength(1);
    for (const answer of answers.filter((one) => one !== "begun"))
      expect(answer).toMatchObject({
        requestId: winners[0]!.requestId,
        organizationId,
        state: "open",
        body: hash("body"),
      });
  });

  test("requests without a key hold no claim", async () => {
    await begun(of(null));
    await begun(of(null));
  });

  test("a key is free again when its answer is forgotten, and when it has expired", async () => {
    const first = await begun(of("a"));
    expect(await kept.free(first.requestId)).toBeTrue();
    expect(await kept.free(first.requestId)).toBeFalse();
    await begun(of("a"));
    await store.setClock(new Date(Date.now() + 24 * 3_600_000 + 60_000));
    try {
      await begun(of("a"));
    } finally {
      await store.setClock(null);
    }
  });

  test("the log of an answer whose key came again after it had expired is removed with those of its day", async () => {
    const logs = databaseLogs(store.db);
    const first = await begun(of("a"));
    await logs.append(first, 0, { text: "secret", isEnd: true });
    try {
      await store.setClock(new Date(Date.now() + 24 * 3_600_000 + 60_000));
      await begun(of("a"));
      await store.setClock(new Date(Date.now() + 49 * 3_600_000));
      expect((await kept.forget()).map(({ requestId }) => requestId)).toContain(first.requestId);
      expect(await logs.read(first, 0)).toEqual([]);
    } finally {
      await store.setClock(null);
    }
  });

  test("an answer whose node is gone is given up, but not one that has a grant by now, or was charged", async () => {
    const book = ledger(store.db, { recovery: "checkpoint" });
    const gone = await begun(of("a"));
    expect([await kept.abandon(gone.requestId), await kept.abandon(gone.requestId)]).toEqual([true, true]);
    const { requestId } = await begun(of("a"));
    const admit = admitOf(organizationId, { requestId });
    await book.run([admit]);
    expect(await another.abandon(requestId)).toBeFalse();
    await book.run([settleOf(admit, 7)]);
    expect([await another.abandon(requestId), (await kept.find(requestId))?.state]).toEqual([false, "open"]);
  });

  test("a background response that was stored meanwhile is not given up: its end would be missing for ever", async () => {
    const { requestId } = await begun(of("a"));
    expect(await kept.respond(requestId, newResponseId(), '{"status":"in_progress"}')).toBeTrue();
    expect([await another.abandon(requestId), (await kept.find(requestId))?.state]).toEqual([false, "open"]);
    await another.end(requestId, { state: "ended", bytes: 0, response: '{"status":"failed"}' });
    expect(await another.abandon(requestId)).toBeTrue();
  });

  test("an answer whose run another node has settled becomes no background response, so its key can be freed", async () => {
    const book = ledger(store.db, { recovery: "checkpoint" });
    const { requestId } = await begun(of("a"));
    const admit = admitOf(organizationId, { requestId });
    await book.run([admit]);
    await book.run([settleOf(admit, 0)]);
    expect(await kept.respond(requestId, newResponseId(), '{"status":"in_progress"}')).toBeFalse();
    expect(await another.abandon(requestId)).toBeTrue();
  });

  test("an answer ends once", async () => {
    const { requestId } = await begun(of("a"));
    expect(await kept.open([requestId, newRequestId()])).toEqual([requestId]);
    expect(await another.end(requestId, { state: "ended", bytes: 10 })).toBeTrue();
    expect(await kept.end(requestId, { state: "lost", bytes: 0 })).toBeFalse();
    expect(await kept.find(requestId)).toMatchObject({ state: "ended" });
    expect(await kept.open([requestId, newRequestId()])).toEqual([]);
    expect(await kept.open([])).toEqual([]);
  });

  test("a background response is found by its own organization alone, as it stands", async () => {
    const responseId = newResponseId();
    const { requestId } = await begun(of(null));
    expect(await kept.respond(requestId, responseId, '{"status":"queued"}')).toBeTrue();
    expect(await kept.response(organizationId, responseId)).toMatchObject({
      requestId,
      responseId,
      response: '{"status":"queued"}',
    });
    expect(await kept.response(await store.newOrganization(), responseId)).toBeNull();
    expect(await kept.response(organizationId, "resp_other")).toBeNull();
    await kept.end(requestId, { state: "ended", bytes: 1, response: '{"status":"completed"}' });
    expect(await kept.respond(requestId, responseId, "late")).toBeFalse();
    expect((await another.response(organizationId, responseId))?.response).toBe('{"status":"completed"}');
  });

  test("the end of a background response makes it one again, if a failover has forgotten that it was", async () => {
    const responseId = newResponseId();
    const { requestId } = await begun(of(null));
    expect(await kept.response(organizationId, responseId)).toBeNull();
    await kept.end(requestId, { state: "ended", bytes: 1, response: '{"status":"failed"}', responseId });
    expect((await another.response(organizationId, responseId))?.response).toBe('{"status":"failed"}');
  });

  test("the oldest logs of an organization make room; their claims stay", async () => {
    const ids: string[] = [];
    for (const key of ["a", "b", "c"]) {
      const { requestId } = await begun(of(key));
      await kept.end(requestId, { state: "ended", bytes: 100 });
      ids.push(requestId);
    }
    await begun(of("open"));
    expect(await kept.makeRoom(organizationId, 300)).toEqual([]);
    expect(await kept.makeRoom(organizationId, 250)).toEqual([{ requestId: ids[0]!, organizationId }]);
    expect(await kept.begin(of("a"))).toMatchObject({ requestId: ids[0]!, state: "lost" });
    expect((await kept.makeRoom(organizationId, 0)).map(({ requestId }) => requestId).sort()).toEqual(
      ids.slice(1).sort(),
    );
    expect(await kept.makeRoom(organizationId, 0)).toEqual([]);
  });

  test("the log of a response that was cancelled makes room by its size, which is known when its node has stopped", async () => {
    const { requestId } = await begun(of(null));
    await kept.measured(requestId, 200_000);
    await another.end(requestId, { state: "ended", bytes: 500, response: '{"status":"cancelled"}' });
    expect(await kept.makeRoom(organizationId, 100_000)).toEqual([]);
    await kept.measured(requestId, 200_000);
    expect(await kept.makeRoom(organizationId, 100_000)).toEqual([{ requestId, organizationId }]);
    await kept.measured(requestId, 200_000);
    expect(await kept.makeRoom(organizationId, 100_000)).toEqual([]);
  });

  test("what has expired is forgotten, and everything of an organization that keeps no content", async () => {
    const one = await begun(of("a"));
    expect((await kept.forget()).map(({ requestId }) => requestId)).not.toContain(one.requestId);
    await store.db.query("update organization set keeps_content = false where id = $1", [organizationId.slice(4)]);
    expect(await kept.forget()).toContainEqual({ requestId: one.requestId, organizationId });
    const other = await begun(of("b", { organizationId: await store.newOrganization() }));
    await store.setClock(new Date(Date.now() + 49 * 3_600_000));
    try {
      expect((await kept.forget()).map(({ requestId }) => requestId)).toContain(other.requestId);
    } finally {
      await store.setClock(null);
    }
  });

  test("a note stands in the receipt, for its own organization alone", async () => {
    const book = ledger(store.db, { recovery: "checkpoint" });
    const [first, replay] = [newRequestId(), newRequestId()];
    const keyId = idOf(Bun.randomUUIDv7(), "key_");
    const said = {
      kind: "replay",
      replayOf: first,
      keyId,
      operation: "messages",
      model: "a/b",
      stream: true,
    } as const;
    for (let time = 0; time < 2; time++) await kept.writeNote({ requestId: replay, organizationId }, said);
    expect(await book.receipt(organizationId, replay)).toMatchObject({
      replayOf: first,
      keyId,
      nanos: { charged: 0 },
      outcome: "completed",
    });
    expect(await book.receipt(await store.newOrganization(), replay)).toBeNull();
    expect((await book.receiptOfAny(replay))?.organizationId).toBe(organizationId);
  });
});
