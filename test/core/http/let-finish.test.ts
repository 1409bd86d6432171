/**
 * A client that leaves an answer that was requested from its engine unstreamed, on each protocol: the engine may finish
 * within ten seconds, and the answer is charged by the engine's report; unless a drain, a revocation or the engine
 * itself ends it.
 */
import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { busyness } from "../../harness/busyness.ts";
import { model, type Service, says, startService } from "../../harness/engine.ts";
import { lineOf } from "../../harness/log-lines.ts";
import { nanosOf } from "../../harness/money.ts";
import { newKey, newMember } from "../../harness/organizations.ts";
import { until } from "../../harness/until.ts";
import { leftAt, receiptOf } from "./leaving.ts";

setDefaultTimeout(60_000);

/** Request bodies by path, each with a cap of at most `unstreamed_tokens_max`. */
const bodies: Record<string, (directives: string) => object> = {
  "/v1/chat/completions": (directives) => ({ messages: says(directives), max_completion_tokens: 200 }),
  "/v1/messages": (directives) => ({ messages: says(directives), max_tokens: 200 }),
  "/v1/responses": (directives) => ({ input: says(directives), max_output_tokens: 200 }),
};
const paths = Object.keys(bodies);

const left = (of: Service, path: string, directives: string, key?: string) =>
  leftAt(of, path, bodies[path]!, { directives, key });

const service = await startService({ engine: { directives: "", namesModel: false } });
afterAll(() => service.stop());

for (const path of paths) {
  test(`${path}: an engine that answers in time is paid by its report`, async () => {
    const logged = service.stderr().length;
    const { engine } = await left(service, path, "ttft=1500 tokens=30");
    await until(() => engine.ended !== null, 5_000, "the engine to end");
    expect(engine).toMatchObject({ ended: "complete", tokens: 30 });
    const receipt = await receiptOf(service, path, logged);
    expect(receipt).toMatchObject({ outcome: "cancelled", usage: { output_tokens: 30, source: "reported" } });
    expect(nanosOf(receipt.cost.charged)).toBe(receipt.usage.input_tokens * 100 + 30 * 400);
  });

  test(`${path}: one that breaks is paid nothing`, async () => {
    const logged = service.stderr().length;
    await left(service, path, "slow-headers=1000 status=500");
    const receipt = await receiptOf(service, path, logged);
    expect(receipt).toMatchObject({ outcome: "cancelled", usage: { input_tokens: 0, output_tokens: 0 } });
    expect(nanosOf(receipt.cost.charged)).toBe(0);
  });
}

test("an engine that takes longer is let go after ten seconds, and its input alone is charged", async () => {
  const logged = service.stderr().length;
  const running = await Promise.all(paths.map((path) => left(service, path, "ttft=30000")));
  await until(() => running.every(({ engine }) => engine.ended === "client-left"), 12_000, "the engine to be let go");
  const now_ms = performance.now();
  for (const { left_ms } of running) expect(now_ms - left_ms).toBeGreaterThan(9_500);
  for (const path of paths) {
    const { usage, cost } = await receiptOf(service, path, logged);
    expect(usage).toMatchObject({ output_tokens: 0, source: "estimated" });
    expect(nanosOf(cost.charged)).toBe(usage.input_tokens * 100);
    expect(nanosOf(cost.charged)).toBeGreaterThan(0);
  }
});

test("meanwhile it takes its place among the requests that run at once", async () => {
  const single = await startService({ plans: { single: "{ concurrent_requests: 1 }" }, engine: { directives: "" } });
  const { key } = await newMember(single, "single");
  const path = paths[0]!;
  const ask = () => single.post(path, { model, ...bodies[path]!("tokens=2"), stream: false }, { key });
  const { engine } = await left(single, path, "ttft=2000 tokens=2", key);
  expect((await ask()).status).toBe(429);
  await until(() => engine.ended === "complete", 5_000, "the engine to end");
  await until(async () => (await ask()).status === 200, 2_000, "the place to be free");
  await single.stop();
});

test("a key that is revoked ends it, and its input alone is charged", async () => {
  const logged = service.stderr().length;
  const made = await newKey(service, service.organization);
  const { engine } = await left(service, paths[0]!, "ttft=30000", made.key);
  await service.json("key", "revoke", made.id);
  await until(() => engine.ended === "client-left", 3_000, "the engine to be let go");
  const { usage, cost } = await receiptOf(service, paths[0]!, logged);
  expect(usage).toMatchObject({ output_tokens: 0, source: "estimated" });
  expect(nanosOf(cost.charged)).toBe(usage.input_tokens * 100);
});

test("a drain waits for it no longer than for others, and its input alone is charged", async () => {
  const leaving = await startService({ limits: "{ drain_delay_ms: 0, drain_ms: 600 }", engine: { directives: "" } });
  const [late, soon] = await Promise.all([
    left(leaving, paths[0]!, "ttft=30000"),
    left(leaving, paths[1]!, "ttft=400 tokens=7"),
  ]);
  leaving.signal("SIGTERM");
  expect(await leaving.exited).toBe(0);
  expect(performance.now() - late.left_ms).toBeLessThan(8_000 * busyness());
  expect(soon.engine).toMatchObject({ ended: "complete", tokens: 7 });
  const inTime = await lineOf(leaving, { event: "request", route: paths[1]! });
  expect(inTime).toMatchObject({ outcome: "cancelled", output_tokens: 7, usage_source: "reported" });
  const ended = await lineOf(leaving, { event: "request", route: paths[0]! });
  expect(ended).toMatchObject({ outcome: "cancelled", output_tokens: 0, usage_source: "estimated" });
  expect(ended.input_tokens).toBeGreaterThan(0);
  await leaving.stop();
});
