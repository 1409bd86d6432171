/**
 * Answers that the service requests from the engine unstreamed: when it does so, and what a client pays that
 * disconnects, on each protocol. The engine may finish within ten seconds, and the answer is charged by the engine's
 * report, unless a drain, a revocation or the engine itself ends it. Otherwise the input alone is charged, but a client
 * cannot get that repeatedly.
 */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { busyness } from "../../harness/busyness.ts";
import { model, type Service, says, startService } from "../../harness/engine.ts";
import { nanosOf } from "../../harness/money.ts";
import { newKey, newMember } from "../../harness/organizations.ts";
import { until } from "../../harness/until.ts";
import { leftAt } from "./leaving.ts";

setDefaultTimeout(60_000);

/** The largest cap with which an engine whose speed is known is asked unstreamed. */
const cap = 4096;
/** The price of an output token, in nanos. */
const price = 400;
/** Makes request bodies by path, with a cap of at most `unstreamed_tokens_max` unless another is given. */
const bodies: Record<string, (directives: string, outputTokens_max?: number) => object> = {
  "/v1/chat/completions": (directives, max = 200) => ({ messages: says(directives), max_completion_tokens: max }),
  "/v1/messages": (directives, max = 200) => ({ messages: says(directives), max_tokens: max }),
  "/v1/responses": (directives, max = 200) => ({ input: says(directives), max_output_tokens: max }),
};
const paths = Object.keys(bodies);
const [chat, messages] = paths as [string, string];

const left = (of: Service, path: string, directives: string, key = of.key, max?: number) =>
  leftAt(of, path, (said) => bodies[path]!(said, max), directives, { key });
type Left = Awaited<ReturnType<typeof left>>;

/**
 * The hold for an answer of `cap` tokens is below a hundredth of the first plan's limit, and above a hundredth of the
 * second's.
 */
const plans = {
  roomy: `{ session: ${cap * price * 110} }`,
  tight: `{ session: ${cap * price * 90} }`,
  single: "{ concurrent_requests: 1 }",
};
const service = await startService({ engine: { directives: "", namesModel: false }, plans });
afterAll(() => service.stop());

const ask = (directives: string, max: number, key = service.key) =>
  service.post(chat, { model, ...bodies[chat]!(directives, max), stream: false }, { key });

/** Whether the engine was asked for a stream. */
async function isStreamed(directives: string, max_tokens = cap, key = service.key): Promise<boolean> {
  expect((await ask(directives, max_tokens, key)).status).toBe(200);
  return (service.engine.requests.at(-1)!.body as { stream?: boolean }).stream === true;
}

async function expectInputChargedAlone({ receipt }: Left): Promise<void> {
  const { outcome, usage, cost } = await receipt();
  expect([outcome, usage]).toMatchObject(["cancelled", { output_tokens: 0, source: "estimated" }]);
  expect(nanosOf(cost.charged)).toBe(usage.input_tokens * 100);
  expect(nanosOf(cost.charged)).toBeGreaterThan(0);
}

test("an engine is asked streamed until its speed is known, and then whole up to a cap of 4,096", async () => {
  for (let time = 0; time < 8; time++) expect(await isStreamed("tokens=800")).toBe(true);
  expect(await isStreamed("tokens=800", cap)).toBe(false);
  expect(await isStreamed("tokens=800", cap + 1)).toBe(true);
});

test("and where a hundred such holds fit into what is left of every window", async () => {
  const [roomy, tight] = await Promise.all(["roomy", "tight"].map((plan) => newMember(service, plan)));
  expect(await isStreamed("tokens=80", cap, tight!.key)).toBe(true);
  expect(await isStreamed("tokens=80", cap, roomy!.key)).toBe(false);
  // The member's own use counts: after these answers, of 13 caps in all, fewer than a hundred holds fit.
  expect(await isStreamed("tokens=4096", cap, roomy!.key)).toBe(false);
  await Promise.all([1, 2, 3].map(() => ask("tokens=16384", 4 * cap, roomy!.key)));
  await until(async () => await isStreamed("tokens=80", cap, roomy!.key), 5_000, "the window to be fuller");
});

// Between two engine failures one answer succeeds, because the service does not wait for an engine that fails
// repeatedly.
describe.each([...paths.map((path) => [path, 200] as const), [chat, cap] as const])("%s, cap %d", (path, max) => {
  test("an engine that breaks is paid nothing", async () => {
    const { receipt } = await left(service, path, "slow-headers=600 status=500", service.key, max);
    const { outcome, usage, cost } = await receipt();
    expect([outcome, usage]).toMatchObject(["cancelled", { input_tokens: 0, output_tokens: 0 }]);
    expect(nanosOf(cost.charged)).toBe(0);
  });

  test("an engine that answers in time is paid by its report", async () => {
    const { engine, receipt } = await left(service, path, "ttft=600 tokens=30", service.key, max);
    expect((engine.body as { stream?: boolean }).stream ?? false).toBe(false);
    await until(() => engine.ended !== null, 5_000, "the engine to end");
    expect(engine).toMatchObject({ ended: "complete", tokens: 30 });
    const { outcome, usage, cost } = await receipt();
    expect([outcome, usage]).toMatchObject(["cancelled", { output_tokens: 30, source: "reported" }]);
    expect(nanosOf(cost.charged)).toBe(usage.input_tokens * 100 + 30 * price);
  });
});

test("an engine that takes longer is let go after ten seconds, and its input alone is charged", async () => {
  const { key } = await newKey(service, service.organization);
  const running = await Promise.all([
    ...paths.map((path) => left(service, path, "ttft=30000")),
    ...[1, 2].map(() => left(service, chat, "ttft=30000", key, cap)),
  ]);
  await until(() => running.every(({ engine }) => engine.ended === "client-left"), 12_000, "the engine to be let go");
  for (const one of running) {
    expect(performance.now() - one.left_ms).toBeGreaterThan(9_500);
    expect((one.engine.body as { stream?: boolean }).stream ?? false).toBe(false);
    await expectInputChargedAlone(one);
  }
  // The requests have taught the service that the engine is slow; requests of other clients teach it that it is fast.
  await until(async () => !(await isStreamed("tokens=800")), 30_000, "the engine to be fast again");
  // After two such requests of a client, the engine is asked for a stream for this client.
  expect(await isStreamed("tokens=800", cap, key)).toBe(true);
});

test("meanwhile it takes its place among the requests that run at once", async () => {
  const { key } = await newMember(service, "single");
  const { engine } = await left(service, chat, "ttft=1500 tokens=2", key);
  expect((await ask("tokens=2", 200, key)).status).toBe(429);
  await until(() => engine.ended === "complete", 5_000, "the engine to end");
  await until(async () => (await ask("tokens=2", 200, key)).status === 200, 2_000, "the place to be free");
});

test("a key that is revoked ends it, and its input alone is charged", async () => {
  const made = await newKey(service, service.organization);
  const leaver = await left(service, chat, "ttft=30000", made.key);
  await service.json("key", "revoke", made.id);
  await until(() => leaver.engine.ended === "client-left", 3_000, "the engine to be let go");
  await expectInputChargedAlone(leaver);
});

test("a drain waits for it no longer than for others, and its input alone is charged", async () => {
  const leaving = await startService({ limits: "{ drain_delay_ms: 0, drain_ms: 600 }", engine: { directives: "" } });
  const [late, soon] = await Promise.all([
    left(leaving, chat, "ttft=30000"),
    left(leaving, messages, "ttft=400 tokens=7"),
  ]);
  leaving.signal("SIGTERM");
  expect(await leaving.exited).toBe(0);
  expect(performance.now() - late.left_ms).toBeLessThan(8_000 * busyness());
  expect(soon.engine).toMatchObject({ ended: "complete", tokens: 7 });
  expect(await soon.logged()).toMatchObject({ outcome: "cancelled", output_tokens: 7, usage_source: "reported" });
  const ended = await late.logged();
  expect(ended).toMatchObject({ outcome: "cancelled", output_tokens: 0, usage_source: "estimated" });
  expect(ended.input_tokens).toBeGreaterThan(0);
  await leaving.stop();
});
