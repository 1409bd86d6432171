/**
 * What befalls an answer with an idempotency key beside its being repeated: its limit refuses it, its log is gone, the node
 * keeps as many as it may, its key is revoked or limited, and the node drains.
 */
import { afterAll, beforeAll, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import type { RequestReceipt } from "../../src/management/receipt-shape.ts";
import { serverDatabase } from "../../src/postgres/server.ts";
import { model, type Service, says, startService } from "../harness/engine.ts";
import { freshDatabase } from "../harness/services.ts";
import { until } from "../harness/until.ts";

setDefaultTimeout(60_000);

const open_max = 3;
let database: Awaited<ReturnType<typeof freshDatabase>>;
let service: Service;
beforeAll(async () => {
  database = await freshDatabase();
  service = await startService({
    engine: { directives: "", namesModel: false },
    limits: "{ drain_ms: 1500 }",
    more: `answers: { open_max: ${open_max} }`,
    sluice: { store: "postgres", env: { DATABASE_URL: database.url } },
  });
});
afterAll(async () => {
  await service.stop();
  await database.drop();
});
/** None of the last test runs on. */
beforeEach(() => until(() => service.engine.counts.active === 0, 10_000, "the engine to be idle"));

const ask = (key: string, directives: string, more: { stream?: boolean; key?: string; signal?: AbortSignal } = {}) => {
  const { stream = true, ...init } = more;
  const body = { model, messages: says(directives), stream };
  return service.post("/v1/chat/completions", body, { ...init, headers: { "idempotency-key": key } });
};
const codeOf = async (response: Response) => ((await response.json()) as { error: { code: string } }).error.code;
const idOf = (response: Response) => response.headers.get("x-service-request-id")!;
const newKey = () => crypto.randomUUID();

async function receiptOf(id: string, key = service.key): Promise<RequestReceipt> {
  let receipt: RequestReceipt | null = null;
  const settled = async () => {
    const response = await service.fetch(`/v1/service/requests/${id}`, { key });
    receipt = response.status === 200 ? ((await response.json()) as RequestReceipt) : null;
    return receipt !== null && receipt.outcome !== "running";
  };
  await until(settled, 10_000, `the receipt of ${id}`);
  return receipt!;
}

/** Its client leaves when it has something of the answer. */
async function left(key: string, directives: string, apiKey = service.key): Promise<string> {
  const response = await ask(key, directives, { key: apiKey });
  const reader = response.body!.getReader();
  for (let text = ""; !text.includes('"content":"'); ) text += new TextDecoder().decode((await reader.read()).value);
  await reader.cancel();
  return idOf(response);
}

const created = (name: string) =>
  service.json<{ id: string; key: string }>("key", "create", "--org", service.organization, "--name", name);

test("one that a limit refuses leaves its key free", async () => {
  const { id, key: apiKey } = await created("limited");
  await service.json("key", "update", id, "--limit", "session=1");
  const key = newKey();
  const refused = await ask(key, "tokens=4", { key: apiKey });
  expect(refused.status).toBe(429);
  await refused.text();
  await service.json("key", "update", id, "--limit", "session=none");
  const served = async () => {
    const response = await ask(key, "tokens=4", { key: apiKey });
    await response.text();
    return response.status === 200 && response.headers.get("x-service-replay-of") === null;
  };
  await until(served, 10_000, "the limit to be gone");
});

test("one whose log is gone is refused for good, and never charged again", async () => {
  const key = newKey();
  const first = await ask(key, "tokens=9");
  await first.text();
  const { units } = await receiptOf(idOf(first));
  expect(units.charged).toBeGreaterThan(0);
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

test("beyond those that the node may keep at once, one is refused, and can be asked again", async () => {
  const ids = await Promise.all(Array.from({ length: open_max }, () => left(newKey(), "tokens=60 tps=30")));
  const key = newKey();
  const refused = await ask(key, "tokens=4");
  expect([refused.status, await codeOf(refused)]).toEqual([503, "overloaded"]);
  // Those without a key are none of them.
  const plain = await service.post("/v1/chat/completions", { model, messages: says("tokens=4") });
  expect(plain.status).toBe(200);
  for (const id of ids) expect(await receiptOf(id)).toMatchObject({ outcome: "completed", detached: true });
  const served = await ask(key, "tokens=4");
  expect(served.status).toBe(200);
  await served.text();
});

test("one that was left ends when its key is revoked, and is charged as far as it came", async () => {
  const { id: keyId, key: apiKey } = await created("revoked");
  const id = await left(newKey(), "tokens=9000 tps=50", apiKey);
  await service.json("key", "revoke", keyId);
  const receipt = await receiptOf(id);
  expect(receipt).toMatchObject({ outcome: "failed", error_code: "revoked_api_key" });
  expect(receipt.usage.output_tokens).toBeLessThan(9_000);
  expect(receipt.units.charged).toBeGreaterThan(0);
});

test("one that was left ends at a limit that is lowered under it", async () => {
  const { id: keyId, key: apiKey } = await created("lowered");
  const id = await left(newKey(), "tokens=9000 tps=200", apiKey);
  await service.json("key", "update", keyId, "--limit", "session=100");
  const receipt = await receiptOf(id, apiKey);
  expect(receipt.usage.output_tokens).toBeLessThan(9_000);
  expect(receipt.outcome).not.toBe("running");
});

test("a node that drains waits for one that was left, ends it at its deadline, and another repeats its failure", async () => {
  const key = newKey();
  const id = await left(key, "tokens=9000 tps=50");
  const began_ms = performance.now();
  service.signal("SIGTERM");
  await service.exited;
  expect(performance.now() - began_ms).toBeGreaterThan(1_000);
  const second = await startService({
    engineUrl: service.engine.url,
    sluice: { store: "postgres", env: { DATABASE_URL: database.url, ENGINE_KEY: "canary-engine-key-8c1f" } },
  });
  try {
    const body = { model, messages: says("tokens=9000 tps=50"), stream: true };
    const init = { key: service.key, headers: { "idempotency-key": key } };
    const again = await second.post("/v1/chat/completions", body, init);
    expect([again.status, again.headers.get("x-service-replay-of")]).toEqual([200, id]);
    expect(await again.text()).toContain('"error":{');
  } finally {
    await second.stop();
  }
});
