/**
 * A client that disconnects, on each protocol, streaming or not, before the first byte, in the middle, or after the
 * last: its engine is released within a second, and one record is written within two, with the tokens that were
 * produced until then.
 */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { busyness } from "../../harness/busyness.ts";
import { inferenceBodies, model, startService } from "../../harness/engine.ts";
import { endedReceipt, requestIdOf } from "../../harness/receipts.ts";
import { until } from "../../harness/until.ts";
import { leftAt } from "./leaving.ts";

setDefaultTimeout(60_000);

/**
 * At this many tokens a second, the engine generates at most `tokens_in_flight` before it learns that the client has
 * disconnected.
 */
const pace = 100;
const tokens_in_flight = 10;

const service = await startService({ engine: { directives: "", namesModel: false } });
afterAll(() => service.stop());

const kinds = Object.entries(inferenceBodies).flatMap(([path, body]) =>
  [true, false].map((stream) => [stream ? "a stream" : "an unstreamed answer", path, stream, body] as const),
);
describe.each(kinds)("%s of %s", (_, path, stream, body) => {
  /** Disconnects from the answer when the engine has produced `tokens` tokens of it. */
  const left = async (directives: string, tokens: number) => {
    const { engine, receipt } = await leftAt(service, path, body, directives, { stream, tokens });
    await until(() => engine.ended === "client-left", 1000, "the engine to be let go");
    return { engine, receipt: await receipt() };
  };

  test("before the first byte: the input alone", async () => {
    const { receipt } = await left("ttft=20000", 0);
    expect(receipt).toMatchObject({ outcome: "cancelled", stream, usage: { output_tokens: 0, source: "estimated" } });
    expect(receipt.usage.input_tokens).toBeGreaterThan(0);
  });

  test("in the middle: as much as was produced", async () => {
    const { engine, receipt } = await left(`tps=${pace} tokens=5000`, 20);
    const { outcome, usage } = receipt;
    expect(outcome).toBe("cancelled");
    expect(usage.output_tokens).toBeLessThanOrEqual(engine.tokens);
    expect(engine.tokens - usage.output_tokens).toBeLessThanOrEqual(tokens_in_flight * busyness());
  });

  test("after the last byte: all of it, once", async () => {
    const leaving = new AbortController();
    const response = await service.post(path, { model, ...body("tokens=40"), stream }, { signal: leaving.signal });
    await response.text();
    leaving.abort();
    const receipt = await endedReceipt(service, requestIdOf(response), { deadline_ms: 2000 });
    expect(receipt).toMatchObject({ outcome: "completed", usage: { output_tokens: 40, source: "reported" } });
    expect(service.engine.requests.at(-1)).toMatchObject({ ended: "complete", tokens: 40 });
  });
});
