/**
 * A request with an idempotency key, on each protocol: a repeat of it gets the same bytes, from the first one on,
 * without another call or charge; and an answer goes on when its client leaves.
 */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { inferenceBodies, model, startService } from "../../harness/engine.ts";
import { dollars, nanosOf } from "../../harness/money.ts";
import { newKey, newMember } from "../../harness/organizations.ts";
import { endedReceipt, requestIdOf } from "../../harness/receipts.ts";
import { until } from "../../harness/until.ts";

setDefaultTimeout(60_000);

const paths = Object.keys(inferenceBodies);

const service = await startService({
  engine: { directives: "", namesModel: false },
  more: "answers: { answer_bytes_max: 65536 }",
});
afterAll(() => service.stop());

interface Asked {
  directives?: string;
  stream?: boolean;
  key: string;
  signal?: AbortSignal;
  more?: object;
}

const ask = (path: string, { directives = "", stream = false, key, signal, more }: Asked) =>
  service.post(
    path,
    { model, ...inferenceBodies[path]!(directives), stream, ...more },
    { headers: { "idempotency-key": key }, ...(signal ? { signal } : {}) },
  );
const replayOf = (response: Response) => response.headers.get("x-service-replay-of");
const idempotencyKey = () => `key ${crypto.randomUUID()}`;
const codeOf = async (response: Response) => {
  const { error } = (await response.json()) as { error: { code?: string; details?: { error_code: string } } };
  return error.details?.error_code ?? error.code;
};

const receiptOf = (id: string) => endedReceipt(service, id);

describe.each(paths)("%s", (path) => {
  for (const stream of [true, false]) {
    const kind = stream ? "a stream" : "a whole answer";

    test(`${kind} is repeated byte for byte, and charged once`, async () => {
      const key = idempotencyKey();
      const before = service.engine.counts.requests;
      const first = await ask(path, { key, stream, directives: "tokens=40" });
      const text = await first.text();
      expect([first.status, replayOf(first)]).toEqual([200, null]);
      for (let time = 0; time < 2; time++) {
        const again = await ask(path, { key, stream, directives: "tokens=40" });
        expect(await again.text()).toBe(text);
        expect([again.status, replayOf(again)]).toEqual([200, requestIdOf(first)]);
        for (const name of ["content-type", "x-service-usage-week-percent"])
          expect(again.headers.get(name)).toBe(first.headers.get(name));
        expect(await receiptOf(requestIdOf(again))).toMatchObject({
          replay_of: requestIdOf(first),
          stream,
          model,
          outcome: "completed",
          cost: { held: dollars(0), charged: dollars(0), uncharged: dollars(0) },
        });
      }
      expect(service.engine.counts.requests).toBe(before + 1);
      const receipt = await receiptOf(requestIdOf(first));
      expect(receipt).toMatchObject({ replay_of: null, detached: false, outcome: "completed" });
      expect(nanosOf(receipt.cost.charged)).toBeGreaterThan(0);
    });

    test(`${kind} is joined while it is written`, async () => {
      const key = idempotencyKey();
      const before = service.engine.counts.requests;
      const asked = { key, stream, directives: "tokens=30 tps=30" };
      const first = ask(path, asked);
      await until(() => service.engine.counts.requests > before, 5_000, "the engine to be asked");
      const all = [first, ask(path, asked), ask(path, asked)];
      const texts = await Promise.all(all.map(async (one) => (await one).text()));
      expect(new Set(texts).size).toBe(1);
      expect(service.engine.counts.requests).toBe(before + 1);
    });

    test(`of ${kind} whose client leaves, the rest is there for it`, async () => {
      const key = idempotencyKey();
      const leaving = new AbortController();
      const asked = { key, stream, directives: "tokens=30 tps=30" };
      const before = service.engine.counts.requests;
      const answer = ask(path, { ...asked, signal: leaving.signal });
      if (stream) await (await answer).body!.getReader().read();
      else await until(() => service.engine.counts.requests > before, 5_000, "the engine to be asked");
      leaving.abort();
      await answer.catch(() => null);
      const again = await ask(path, asked);
      expect([again.status, service.engine.counts.requests]).toEqual([200, before + 1]);
      const text = await again.text();
      expect(text).not.toContain('"error":{');
      const whole = { outcome: "completed", usage: { output_tokens: 30, source: "reported" } };
      expect(await receiptOf(replayOf(again)!)).toMatchObject({ detached: true, ...whole });
    });

    test(`a request for ${kind} that fails before its answer leaves its key free`, async () => {
      const key = idempotencyKey();
      const before = service.engine.counts.requests;
      const failed = await ask(path, { key, stream, directives: "status=400" });
      expect(failed.status).toBe(400);
      await failed.text();
      const again = await ask(path, { key, stream, directives: "tokens=5" });
      expect([again.status, replayOf(again), service.engine.counts.requests]).toEqual([200, null, before + 2]);
      await again.text();
    });
  }

  test("a stream that fails after its first part is repeated with its failure", async () => {
    const asked = { key: idempotencyKey(), stream: true, directives: "tokens=30 error-after=10" };
    const first = await ask(path, asked);
    const text = await first.text();
    expect(text).toContain("error");
    const again = await ask(path, asked);
    expect([await again.text(), replayOf(again)]).toEqual([text, requestIdOf(first)]);
  });

  test("another body with the same key is refused, and so is a key that is none", async () => {
    const key = idempotencyKey();
    await (await ask(path, { key, directives: "tokens=5" })).text();
    const other = await ask(path, { key, directives: "tokens=6" });
    expect([other.status, await codeOf(other)]).toEqual([400, "idempotency_key_reused"]);
    for (const wrong of ["x".repeat(256), "a\tb", "ü"]) {
      const refused = await ask(path, { key: wrong });
      expect([refused.status, await codeOf(refused)]).toEqual([400, "invalid_value"]);
    }
  });

  test("an answer beyond the limit reaches its client, and is not repeated or charged again", async () => {
    const asked = { key: idempotencyKey(), stream: true, directives: "tokens=2000" };
    const before = service.engine.counts.requests;
    const first = await ask(path, asked);
    const text = await first.text();
    expect(text.length).toBeGreaterThan(65_536);
    expect(text).not.toContain('"error":{');
    const again = await ask(path, asked);
    expect([again.status, await codeOf(again)]).toEqual([400, "idempotency_answer_lost"]);
    expect(service.engine.counts.requests).toBe(before + 1);
  });
});

test("a key is an organization's, a key's and an operation's own", async () => {
  const key = idempotencyKey();
  const before = service.engine.counts.requests;
  const { key: otherKey } = await newKey(service, service.organization);
  for (const path of paths) await (await ask(path, { key, directives: "tokens=5" })).text();
  const body = { model, ...inferenceBodies[paths[0]!]!("tokens=5"), stream: false };
  const other = await service.post(paths[0]!, body, { key: otherKey, headers: { "idempotency-key": key } });
  expect([other.status, replayOf(other)]).toEqual([200, null]);
  expect(service.engine.counts.requests).toBe(before + paths.length + 1);
});

test("an organization that keeps no content cannot use keys", async () => {
  const { organization, key } = await newMember(service, "pro");
  await service.json("org", "policy", organization, "--content", "none");
  for (const path of paths) {
    const body = { model, ...inferenceBodies[path]!(""), stream: false };
    const refused = await service.post(path, body, { key, headers: { "idempotency-key": "a" } });
    expect([refused.status, await codeOf(refused)]).toEqual([400, "unsupported_feature"]);
    expect((await service.post(path, body, { key })).status).toBe(200);
  }
});
