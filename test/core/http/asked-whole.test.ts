/**
 * The service may request an answer from the engine unstreamed although the answer's cap is above
 * `unstreamed_tokens_max`. What a client may rely on then: if the engine finishes within ten seconds, the charge is
 * what the engine reports, even if the client leaves. Otherwise the charge is for the input alone, but a client cannot
 * have that time after time.
 */
import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { model, says, startService } from "../../harness/engine.ts";
import { nanosOf } from "../../harness/money.ts";
import { newKey, newMember } from "../../harness/organizations.ts";
import { until } from "../../harness/until.ts";
import { leftAt, receiptOf } from "./leaving.ts";

setDefaultTimeout(60_000);

const path = "/v1/chat/completions";
const cap = 4096;
/** The price of an output token, in nanos. */
const price = 400;
/**
 * The hold for an answer of `cap` tokens is below a hundredth of the first plan's limit, and above a hundredth of the
 * second's.
 */
const plans = { roomy: `{ session: ${cap * price * 110} }`, tight: `{ session: ${cap * price * 90} }` };
const service = await startService({ engine: { directives: "", namesModel: false }, plans });
afterAll(() => service.stop());

const body = (max_completion_tokens: number) => (directives: string) => ({
  messages: says(directives),
  max_completion_tokens,
});

/** Whether the engine was asked for a stream. */
async function isStreamed(directives: string, max_tokens = cap, key = service.key): Promise<boolean> {
  const answer = await service.post(path, { model, ...body(max_tokens)(directives), stream: false }, { key });
  expect(answer.status).toBe(200);
  return (service.engine.requests.at(-1)!.body as { stream?: boolean }).stream === true;
}

test("an engine is asked streamed until its speed is known, and then whole up to a cap of 4,096", async () => {
  for (let time = 0; time < 8; time++) expect(await isStreamed("tokens=800")).toBe(true);
  expect(await isStreamed("tokens=800", 4096)).toBe(false);
  expect(await isStreamed("tokens=800", 4097)).toBe(true);
});

test("and where a hundred such holds fit into what is left of every window", async () => {
  const [roomy, tight] = await Promise.all(["roomy", "tight"].map((plan) => newMember(service, plan)));
  expect(await isStreamed("tokens=80", cap, tight!.key)).toBe(true);
  expect(await isStreamed("tokens=80", cap, roomy!.key)).toBe(false);
  // The member's own use counts: after this request, fewer than a hundred holds fit.
  expect(await isStreamed("tokens=4096", 4096, roomy!.key)).toBe(false);
  await service.post(path, { model, ...body(16_384)("tokens=40000"), stream: false }, { key: roomy!.key });
  await until(async () => await isStreamed("tokens=80", cap, roomy!.key), 5_000, "the window to be fuller");
});

test("a client that leaves is charged by the report if the engine finishes within ten seconds", async () => {
  const logged = service.stderr().length;
  const { engine } = await leftAt(service, path, body(cap), { directives: "ttft=1000 tokens=300" });
  await until(() => engine.ended !== null, 5_000, "the engine to end");
  expect(engine).toMatchObject({ ended: "complete", tokens: 300 });
  const { outcome, usage, cost } = await receiptOf(service, path, logged);
  expect({ outcome, ...usage }).toMatchObject({ outcome: "cancelled", output_tokens: 300, source: "reported" });
  expect(nanosOf(cost.charged)).toBe(usage.input_tokens * 100 + 300 * price);
});

test("else for its input alone; and after two of those the engine is asked streamed for this client", async () => {
  const { key } = await newKey(service, service.organization);
  const logged = service.stderr().length;
  const ask = () => leftAt(service, path, body(cap), { directives: "ttft=30000", key });
  const both = await Promise.all([ask(), ask()]);
  await until(() => both.every(({ engine }) => engine.ended === "client-left"), 12_000, "the engine to be let go");
  for (const { engine, left_ms } of both) {
    expect((engine.body as { stream?: boolean }).stream ?? false).toBe(false);
    expect(performance.now() - left_ms).toBeGreaterThan(9_500);
  }
  const { usage, cost } = await receiptOf(service, path, logged);
  expect(usage).toMatchObject({ output_tokens: 0, source: "estimated" });
  expect(nanosOf(cost.charged)).toBe(usage.input_tokens * 100);
  // The two requests have taught the service that the engine is slow; other clients' requests show it fast again.
  await until(async () => !(await isStreamed("tokens=800")), 30_000, "the engine to be fast again");
  expect(await isStreamed("tokens=800", cap, key)).toBe(true);
});
