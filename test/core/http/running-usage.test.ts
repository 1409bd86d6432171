/** An engine that reports usage on every chunk, as requested: a client that disconnects is charged by these counts. */
import { expect, test } from "bun:test";
import { model, type Service, says, startService } from "../../harness/engine.ts";
import { endedReceipt, requestIdOf } from "../../harness/receipts.ts";
import { until } from "../../harness/until.ts";

test.each([
  ["usage", "counted"],
  ["off", "estimated"],
] as const)(
  "with %s, a client that leaves in the middle has usage that is %s",
  async (asks, source) => {
    const engine = { directives: "", namesModel: false };
    const service = await startService({ engine, upstream: `running_usage: ${asks}` });
    try {
      const leaving = new AbortController();
      const body = { model, messages: says("tps=20 tokens=15000"), stream: true };
      const response = await service.post("/v1/chat/completions", body, { signal: leaving.signal });
      const gone = response.text().catch(() => null);
      await until(() => (service.engine.requests[0]?.tokens ?? 0) >= 20, 20_000, "some tokens");
      const asked = service.engine.requests[0]!;
      const { stream_options: options } = asked.body as { stream_options: object };
      expect(options).toEqual({ include_usage: true, ...(asks === "usage" && { continuous_usage_stats: true }) });
      expect(await startOf(service)).toBe(source === "counted" ? "the engine's count" : "an estimate");
      leaving.abort();
      expect(await gone).toBeNull();
      await until(() => asked.ended === "client-left", 20_000, "the engine to be let go");
      const { outcome, usage } = await endedReceipt(service, requestIdOf(response));
      expect([outcome, usage.source]).toEqual(["cancelled", source]);
      expect(usage.output_tokens).toBeLessThanOrEqual(asked.tokens);
    } finally {
      await service.stop();
    }
  },
  90_000,
);

/**
 * Whether the input's usage in a message's first event is the engine's count or an estimate. The text has so few
 * letters per token that an estimate is wrong.
 */
async function startOf(service: Service): Promise<string> {
  const ask = { model, max_tokens: 9, stream: true, messages: says("tokens=2", "a b c d e f g h ".repeat(200)) };
  const text = await (await service.post("/v1/messages", ask)).text();
  const [start, end] = [...text.matchAll(/"usage":\{"input_tokens":(\d+)/g)].map((found) => found[1]);
  return start === end ? "the engine's count" : "an estimate";
}
