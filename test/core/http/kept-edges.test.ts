/**
 * Special cases of requests with an idempotency key: a limit refuses the request, the node already stores too many
 * answers, or the log of the kept answer is gone.
 */
import { afterAll, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { keptAnswers } from "../../../src/stores/postgres/kept.ts";
import { serverDatabase } from "../../../src/stores/postgres/server.ts";
import { errorOf, model, says, startService } from "../../harness/engine.ts";
import { nanosOf } from "../../harness/money.ts";
import { newKey } from "../../harness/organizations.ts";
import { endedReceipt, requestIdOf } from "../../harness/receipts.ts";
import { freshDatabase } from "../../harness/services.ts";
import { until } from "../../harness/until.ts";

setDefaultTimeout(60_000);

const open_max = 2;
const database = await freshDatabase();
const service = await startService({
  engine: { directives: "", namesModel: false },
  more: `answers: { open_max: ${open_max} }`,
  sluice: { store: "postgres", env: { DATABASE_URL: database.url } },
});
afterAll(async () => {
  await service.stop();
  await database.drop();
});
/** Waits until no stored answer of the previous test is still running. */
beforeEach(() => until(async () => (await keptNow()) === 0, 10_000, "no answer to be kept"));

async function keptNow(): Promise<number> {
  const metrics = await (await service.fetch("/metrics", { key: null })).text();
  return Number(/http_kept_answers (\d+)/.exec(metrics)![1]);
}

const ask = (key: string, directives: string, more: { stream?: boolean; key?: string } = {}) => {
  const { stream = true, ...init } = more;
  const body = { model, messages: says(directives), stream };
  return service.post("/v1/chat/completions", body, { ...init, headers: { "idempotency-key": key } });
};
const codeOf = async (response: Response) => (await errorOf(response)).code;
const idempotencyKey = () => crypto.randomUUID();

const receiptOf = (id: string, key = service.key) => endedReceipt(service, id, { key });

test("one that a limit refuses leaves its key free", async () => {
  const { id, key: apiKey } = await newKey(service, service.organization);
  await service.json("limit", "set", "key", id, "session=0.000000001");
  const key = idempotencyKey();
  const refused = await ask(key, "tokens=4", { key: apiKey });
  expect(refused.status).toBe(429);
  await refused.text();
  await service.json("limit", "set", "key", id, "session=none");
  const served = async () => {
    const response = await ask(key, "tokens=4", { key: apiKey });
    await response.text();
    return response.status === 200 && response.headers.get("x-service-replay-of") === null;
  };
  await until(served, 10_000, "the limit to be gone");
});

test("one more than answers.open_max gets 503, and a place is free when one ends", async () => {
  const before = service.engine.counts.requests;
  const running = await Promise.all(
    Array.from({ length: open_max }, async () => {
      const leaving = new AbortController();
      const body = { model, messages: says("tokens=16000 tps=50"), stream: true, max_tokens: 16_000 };
      const key = await newKey(service, service.organization);
      const headers = { "idempotency-key": idempotencyKey() };
      const response = await service.post("/v1/chat/completions", body, {
        key: key.key,
        headers,
        signal: leaving.signal,
      });
      return { response, leaving, keyId: key.id };
    }),
  );
  const refused = await ask(idempotencyKey(), "tokens=4");
  expect([refused.status, refused.headers.get("retry-after"), await codeOf(refused)]).toEqual([503, "5", "overloaded"]);
  // Whoever quotes the id of such a refusal finds it.
  const receipt = await endedReceipt(service, requestIdOf(refused));
  expect([receipt.outcome, receipt.error_code]).toEqual(["refused", "overloaded"]);
  // Requests without an idempotency key have no such limit.
  const unkept = await service.post("/v1/chat/completions", { model, messages: says("tokens=4") });
  expect([unkept.status, service.engine.counts.requests]).toEqual([200, before + open_max + 1]);
  // A disconnected client does not free capacity, because its answer continues.
  for (const { leaving } of running) leaving.abort();
  expect((await ask(idempotencyKey(), "tokens=4")).status).toBe(503);
  await service.json("key", "revoke", running[0]!.keyId);
  const served = async () => {
    const response = await ask(idempotencyKey(), "tokens=4");
    await response.text();
    return response.status === 200;
  };
  await until(served, 5_000, "a place to be free");
  await service.json("key", "revoke", running[1]!.keyId);
});

test("one whose log is gone is refused for good, and never charged again", async () => {
  const key = idempotencyKey();
  const first = await ask(key, "tokens=9");
  await first.text();
  const { cost } = await receiptOf(requestIdOf(first));
  expect(nanosOf(cost.charged)).toBeGreaterThan(0);
  const db = await serverDatabase(database.url);
  await db.query("delete from kept_answer_entry");
  await db.close();
  const before = service.engine.counts.requests;
  for (let time = 0; time < 2; time++) {
    const again = await ask(key, "tokens=9");
    expect([again.status, await codeOf(again)]).toEqual([400, "idempotency_answer_lost"]);
  }
  expect(service.engine.counts.requests).toBe(before);
});

for (const stream of [false, true])
  test(`a background response, streamed: ${stream}, that was cancelled before its whole answer was stored is cancelled for its receipt, too`, async () => {
    const body = { model, input: says("tokens=9 tps=4"), background: true, stream };
    const response = await service.post("/v1/responses", body);
    const request = requestIdOf(response);
    const text = stream ? "" : await response.text();
    const db = await serverDatabase(database.url);
    await db.transaction(async (tx) => {
      const answers = keptAnswers(tx, { kept_hours: () => 24 });
      const begun = () => answers.find(request);
      await until(async () => (await begun())?.response != null, 10_000, "the response to begin");
      const cancelled = JSON.stringify({ ...JSON.parse((await begun())!.response!), status: "cancelled" });
      expect(await answers.end(request, { state: "ended", bytes: 1, response: cancelled })).toBe(true);
      // The node wants to store its own end of the answer, and waits for this transaction.
      const isWaiting = async () =>
        (await db.query("select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%kept_answer%'"))
          .length > 0;
      await until(isWaiting, 10_000, "the answer to be whole");
    });
    await db.close();
    if (stream) await response.text();
    else expect(text).toContain("in_progress");
    expect(await receiptOf(request)).toMatchObject({ outcome: "cancelled", usage: { output_tokens: 9 } });
  });
