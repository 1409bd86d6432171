/** An engine that is asked for its counts on every chunk: who leaves is charged by them. */
import { expect, test } from "bun:test";
import type { RequestReceipt } from "../../src/management/receipt-shape.ts";
import { model, says, startService } from "../harness/engine.ts";
import { until } from "../harness/until.ts";

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
      const body = { model, messages: says("tps=100 tokens=5000"), stream: true };
      const response = await service.post("/v1/chat/completions", body, { signal: leaving.signal });
      const gone = response.text().catch(() => null);
      await until(() => (service.engine.requests.at(-1)?.tokens ?? 0) >= 20, 20_000, "some tokens");
      const asked = service.engine.requests.at(-1)!;
      const { stream_options: options } = asked.body as { stream_options: object };
      expect(options).toEqual({ include_usage: true, ...(asks === "usage" && { continuous_usage_stats: true }) });
      leaving.abort();
      expect(await gone).toBeNull();
      await until(() => asked.ended === "client-left", 20_000, "the engine to be let go");
      const id = response.headers.get("x-service-request-id");
      const receiptNow = async () =>
        (await (await service.fetch(`/v1/service/requests/${id}`)).json()) as RequestReceipt;
      await until(async () => (await receiptNow()).outcome === "cancelled", 20_000, "the record");
      const { usage } = await receiptNow();
      expect(usage.source).toBe(source);
      expect(usage.output_tokens).toBeLessThanOrEqual(asked.tokens);
    } finally {
      await service.stop();
    }
  },
  90_000,
);
