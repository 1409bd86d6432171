/**
 * A request with an idempotency key, on each protocol: a repeat gets the same bytes, from the first one on, without
 * another engine call or charge. An answer continues when its client disconnects. Other causes that end runs end it
 * too: a revoked key, a suspended organization and a lowered limit end it at once, and a drain waits for it no longer
 * than for others.
 */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { RequestReceipt } from "../../../src/features/receipts/receipt-shape.ts";
import { busyness } from "../../harness/busyness.ts";
import { inferenceBodies, model, type Service, says, startService } from "../../harness/engine.ts";
import { migratedDatabase } from "../../harness/migrated-database.ts";
import { dollars, nanosOf } from "../../harness/money.ts";
import { newKey, newMember } from "../../harness/organizations.ts";
import { endedReceipt, requestIdOf } from "../../harness/receipts.ts";
import { until } from "../../harness/until.ts";

setDefaultTimeout(60_000);

const paths = Object.keys(inferenceBodies);

const service = await startService({
  engine: { directives: "", namesModel: false },
  more: "answers: { answer_bytes_max: 65536 }",
  metering: "{ checkpoint_s: 0.5 }",
  plans: { limitless: "{}" },
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
      const asked = { key, stream, directives: "tokens=30 tps=60" };
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

test("a streamed response whose text has U+2028 after a brace is repeated byte for byte", async () => {
  const more = { input: says("echo", "if (x) {\n}\u2028else {\n}\u2029") };
  const asked = { key: idempotencyKey(), stream: true, more };
  const text = await (await ask("/v1/responses", asked)).text();
  expect(text).toContain("}\u2028else");
  const again = await ask("/v1/responses", asked);
  expect(await again.text()).toBe(text);
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

/** Directives for an answer so long that it does not end by itself while a test watches it. */
const long = "tokens=16000 tps=50";

interface Leaver {
  directives: string;
  stream: boolean;
  /** The idempotency key. */
  repeat: string;
  /** An API key, if not the service's default one. */
  key?: string;
}

function askOf(of: Service, { directives, stream, repeat, key = of.key }: Leaver, signal?: AbortSignal) {
  const body = { model, messages: says(directives, repeat), stream };
  return of.post(paths[0]!, body, { key, headers: { "idempotency-key": repeat }, ...(signal && { signal }) });
}

/** Sends a request, and disconnects when the engine has it. Returns the engine's record of the request. */
async function left(of: Service, asked: Leaver) {
  const leaving = new AbortController();
  const answer = askOf(of, asked, leaving.signal).catch(() => null);
  const run = () => of.engine.requests.find(({ body }) => JSON.stringify(body).includes(asked.repeat));
  await until(() => run() !== undefined, 5_000, "the engine to be asked");
  if (asked.stream) await (await answer)!.body!.getReader().read();
  leaving.abort();
  await answer;
  return run()!;
}

describe("an answer whose client has left is ended", () => {
  const member = (...options: string[]) => newMember(service, "limitless", ...options);

  /** The only record of the organization, once its request is over. */
  async function onlyRecord(organization: string): Promise<RequestReceipt> {
    const holds = async () =>
      (await (await service.fetch("/metrics", { key: null })).text()).match(/usage_holds (\d+)/)![1];
    await until(async () => (await holds()) === "0", 5_000, "no hold to be left");
    const records = await service.json<{ id: string }[]>("request", "list", "--org", organization);
    expect(records).toHaveLength(1);
    let receipt: RequestReceipt | null = null;
    // The note that the run went on without its client is written after the settlement.
    const isNoted = async () => {
      receipt = await service.json<RequestReceipt>("request", "show", records[0]!.id);
      return receipt.detached;
    };
    await until(isNoted, 5_000, "the receipt to say 'detached'");
    return receipt!;
  }

  test.each<[string, (leaver: { id: string; organization: string }) => string[], string]>([
    ["its key is revoked", ({ id }) => ["key", "revoke", id], "revoked_api_key"],
    ["its organization is suspended", (leaver) => ["org", "suspend", leaver.organization], "organization_suspended"],
  ])("when %s, a stream and a whole answer, each with one record", async (_, act, code) => {
    const ends = async (stream: boolean) => {
      const leaver = await member();
      const asked = { directives: long, stream, repeat: crypto.randomUUID(), key: leaver.key };
      const run = await left(service, asked);
      await service.json(...act(leaver));
      await until(() => run.ended !== null, 2_000, "the engine to be let go");
      expect(run.ended).toBe("client-left");
      const receipt = await onlyRecord(leaver.organization);
      expect(receipt).toMatchObject({ outcome: "failed", error_code: code, recovered: false, stream });
      // An answer that was not streamed delivered nothing, so nothing is charged for it.
      expect(nanosOf(receipt.cost.charged) > 0).toBe(stream);
    };
    await Promise.all([ends(true), ends(false)]);
  });

  test("by a limit that is lowered, and a repeat reads how it ended", async () => {
    const limited = await member("--limit", "session=1");
    const asked = { directives: long, stream: true, repeat: crypto.randomUUID(), key: limited.key };
    const run = await left(service, asked);
    await service.json("limit", "set", "key", limited.id, "session=0.00000001");
    await until(() => run.ended !== null, 2_000, "the engine to be let go");
    expect(run.ended).toBe("client-left");
    expect(await onlyRecord(limited.organization)).toMatchObject({ outcome: "completed", stopped_by: "usage_window" });
    const before = service.engine.counts.requests;
    const again = await askOf(service, asked);
    expect(await again.text()).toContain('"finish_reason":"length"');
    expect([again.status, service.engine.counts.requests]).toEqual([200, before]);
  });
});

test("an answer whose client has left is waited for by a drain, up to its deadline, and another node has its whole log or its failure", async () => {
  const database = await migratedDatabase();
  const folder = mkdtempSync(join(tmpdir(), "sluice-departed-"));
  const drain_ms = Math.round(3_000 * Math.min(busyness(), 2));
  const options = {
    limits: `{ drain_delay_ms: 0, drain_ms: ${drain_ms} }`,
    engine: { directives: "", namesModel: false },
    sluice: { store: "postgres", env: { DATABASE_URL: database.url } },
  } as const;
  const leaving = await startService(options);
  const soon = [true, false].map((stream) => ({ directives: "tokens=40 tps=40", stream, repeat: crypto.randomUUID() }));
  const late = { directives: long, stream: true, repeat: crypto.randomUUID() };
  const runs = await Promise.all([...soon, late].map((asked) => left(leaving, asked)));
  expect(runs.map(({ ended }) => ended)).toEqual([null, null, null]);
  leaving.signal("SIGTERM");
  const signalled_ms = performance.now();
  expect(await leaving.exited).toBe(0);
  expect(performance.now() - signalled_ms).toBeGreaterThan(drain_ms - 100);
  expect(runs).toMatchObject([
    { ended: "complete", tokens: 40 },
    { ended: "complete", tokens: 40 },
    { ended: "client-left" },
  ]);

  // With a given data folder, the second service creates no organization.
  const other = await startService({ ...options, sluice: { ...options.sluice, dataDir: folder } });
  const again = await Promise.all([...soon, late].map((asked) => askOf(other, { ...asked, key: leaving.key })));
  const texts = await Promise.all(again.map((response) => response.text()));
  const ids = again.map(({ headers }) => headers.get("x-service-replay-of"));
  const receipts = await Promise.all(
    ids.map(async (id) => (await other.fetch(`/v1/service/requests/${id}`, { key: leaving.key })).json()),
  );
  expect(receipts).toMatchObject([
    { detached: true, outcome: "completed", usage: { output_tokens: 40 } },
    { detached: true, outcome: "completed", usage: { output_tokens: 40 } },
    { detached: true, outcome: "failed", error_code: "draining", recovered: false },
  ]);
  expect(other.engine.counts.requests).toBe(0);
  expect(texts[0]).toContain('"finish_reason":"stop"');
  expect(texts[0]).toEndWith("data: [DONE]\n\n");
  expect(JSON.parse(texts[1]!)).toMatchObject({ usage: { completion_tokens: 40 } });
  expect(texts[2]).toContain('"code":"draining"');
  await other.stop();
  await leaving.stop();
  await database.drop();
  rmSync(folder, { recursive: true, force: true });
});
