/**
 * An engine that reports more usage than was held for the request: recorded in full, charged up to the limit, and
 * counted in a metric.
 */
import { afterAll, expect, test } from "bun:test";
import { model, says, startService } from "../../harness/engine.ts";
import { dollars } from "../../harness/money.ts";
import { newMember } from "../../harness/organizations.ts";
import { endedReceipt, requestIdOf } from "../../harness/receipts.ts";

const limit = 300_000;
const usage = { prompt_tokens: 5000, completion_tokens: 1, total_tokens: 5001 };

const choices = [{ index: 0, message: { role: "assistant", content: "hello" }, finish_reason: "stop" }];
const engine = Bun.serve({ port: 0, fetch: () => Response.json({ choices, usage }) });
const service = await startService({ engineUrl: `${engine.url.origin}/v1`, plans: { tight: `{ session: ${limit} }` } });
afterAll(async () => {
  await service.stop();
  await engine.stop(true);
}, 60_000);

test("usage above every limit is in the receipt and in a metric, and the window is at its limit", async () => {
  const { key } = await newMember(service, "tight");
  const body = { model, messages: says("", "hello"), max_tokens: 10 };
  const response = await service.post("/v1/chat/completions", body, { key });
  expect(response.status).toBe(200);
  const whole = 5000 * 100 + 400;
  expect(await endedReceipt(service, requestIdOf(response), { key })).toMatchObject({
    outcome: "completed",
    usage: { input_tokens: 5000, output_tokens: 1 },
    cost: { charged: dollars(limit), uncharged: dollars(whole - limit) },
    windows: { session: { usage_percent_after: 100 } },
  });
  const metrics = await (await service.fetch("/metrics")).text();
  expect(metrics).toMatch(new RegExp(`^usage_cost_total\\{class="charged"\\} ${limit / 1e9}$`, "m"));
  expect(metrics).toMatch(new RegExp(`^usage_cost_total\\{class="uncharged"\\} ${(whole - limit) / 1e9}$`, "m"));
});
