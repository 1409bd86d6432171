/** An engine that reports more than anybody held for it: recorded in full, charged to the limit, told in a metric. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { RequestReceipt } from "../../src/management/receipt-shape.ts";
import { model, type Service, says, startService } from "../harness/engine.ts";
import { until } from "../harness/until.ts";

const limit = 300_000;
const usage = { prompt_tokens: 5000, completion_tokens: 1, total_tokens: 5001 };

let engine: Bun.Server<undefined>;
let service: Service;
beforeAll(async () => {
  const choices = [{ index: 0, message: { role: "assistant", content: "hello" }, finish_reason: "stop" }];
  engine = Bun.serve({ port: 0, fetch: () => Response.json({ choices, usage }) });
  service = await startService({ engineUrl: `${engine.url.origin}/v1`, plans: { tight: `{ session: ${limit} }` } });
}, 60_000);
afterAll(async () => {
  await service.stop();
  await engine.stop(true);
}, 60_000);

test("what is above every limit stands in the receipt and in a metric, and the window at its limit", async () => {
  await service.json("org", "create", "tight", "--plan", "tight");
  const { key } = await service.json<{ key: string }>("key", "create", "--org", "tight", "--name", "test");
  const body = { model, messages: says("", "hello"), max_tokens: 10 };
  const response = await service.post("/v1/chat/completions", body, { key });
  expect(response.status).toBe(200);
  const path = `/v1/service/requests/${response.headers.get("x-service-request-id")}`;
  const receipt = async () => (await (await service.fetch(path, { key })).json()) as RequestReceipt;
  await until(async () => (await receipt()).outcome === "completed", 5_000, "the record");
  const whole = 5000 * 100 + 400;
  expect(await receipt()).toMatchObject({
    usage: { input_tokens: 5000, output_tokens: 1 },
    units: { charged: limit, uncharged: whole - limit },
    windows: { session: { usage_percent_after: 100 } },
  });
  const metrics = await (await service.fetch("/metrics")).text();
  expect(metrics).toMatch(new RegExp(`^usage_units_total\\{class="charged"\\} ${limit}$`, "m"));
  expect(metrics).toMatch(new RegExp(`^usage_units_total\\{class="uncharged"\\} ${whole - limit}$`, "m"));
});
