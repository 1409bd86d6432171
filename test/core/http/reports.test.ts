/**
 * An engine whose usage reports are wrong: they are not charged, and appear in the record, in the log and in a metric.
 * An engine that reports more than was held for the request: the report is recorded in full, charged up to the limit,
 * and counted in a metric.
 */
import { afterAll, describe, expect, test } from "bun:test";
import type { RequestReceipt } from "../../../src/features/receipts/receipt-shape.ts";
import { freePort } from "../../harness/daemon.ts";
import { model, says, startService } from "../../harness/engine.ts";
import { lineOf } from "../../harness/log-lines.ts";
import { dollars } from "../../harness/money.ts";
import { newMember } from "../../harness/organizations.ts";
import { endedReceipt, requestIdOf } from "../../harness/receipts.ts";
import { until } from "../../harness/until.ts";

/** The usage that the engine reports of its next answer. */
let usage: unknown;
/** The number of deltas, each of one word; all of them arrive in one read together with the end. */
const words = 20;

function answer(): Response {
  const chunk = (value: object) => `data: ${JSON.stringify(value)}\n\n`;
  const deltas = Array.from({ length: words }, () => chunk({ choices: [{ index: 0, delta: { content: "word " } }] }));
  const end = chunk({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }], ...(usage ? { usage } : {}) });
  return new Response(`${deltas.join("")}${end}data: [DONE]\n\n`, { headers: { "content-type": "text/event-stream" } });
}

/** The limit of a session on the plan `tight`. */
const tight = 300_000;

const engine = Bun.serve({ port: 0, fetch: answer });
const operatorPort = await freePort();
const service = await startService({
  engineUrl: `${engine.url.origin}/v1`,
  plans: { free: "{}", tight: `{ session: ${tight} }` },
  sluice: { env: { SLUICE_OPERATOR_PORT: String(operatorPort) } },
});
const { key: freeKey } = await newMember(service, "free");
afterAll(async () => {
  await service.stop();
  await engine.stop(true);
}, 60_000);

const bodies: Record<string, object> = {
  "/v1/chat/completions": { messages: says("", "hello"), stream_options: { include_usage: true } },
  "/v1/messages": { messages: says("", "hello"), max_tokens: 16_000 },
  "/v1/responses": { input: "hello" },
};

const metrics = async () => (await fetch(`http://127.0.0.1:${operatorPort}/metrics`)).text();

async function asked(
  path: string,
  said: unknown,
  key = freeKey,
): Promise<{ id: string; text: string; receipt: RequestReceipt }> {
  usage = said;
  const response = await service.post(path, { model, stream: true, ...bodies[path] }, { key });
  const text = await response.text();
  const id = requestIdOf(response);
  const receipt = await endedReceipt(service, id, { key });
  expect(receipt.outcome).toBe("completed");
  return { id, text, receipt };
}

const isTold = (text: string, tokens: number) =>
  new RegExp(`"(completion_tokens|output_tokens)":${tokens}\\b`).test(text);

describe.each(Object.keys(bodies))("on %s", (path) => {
  test("a 20-word answer reported as 5,000,000 tokens is charged as counted, and the client reads that", async () => {
    const { id, text, receipt } = await asked(path, { prompt_tokens: 12, completion_tokens: 5_000_000 });
    expect(receipt.usage).toMatchObject({ input_tokens: 12, output_tokens: words, source: "counted" });
    expect(receipt.cost).toMatchObject({ charged: dollars(12 * 100 + words * 400), uncharged: dollars(0) });
    expect(isTold(text, words)).toBe(true);
    expect(text).not.toContain("5000000");
    const shown = await service.json<{ report_rejected: unknown }>("request", "show", id);
    const said = expect.objectContaining({ prompt_tokens: 12, output_tokens: 5_000_000 });
    expect(shown.report_rejected).toEqual({ output: "above_cap", said });
  });
});

test("an honest report has no such mark, also of reasoning that nobody saw", async () => {
  const details = { completion_tokens_details: { reasoning_tokens: 9_000 } };
  const { id, receipt } = await asked("/v1/chat/completions", {
    prompt_tokens: 100_000,
    completion_tokens: 9_020,
    ...details,
  });
  expect(receipt.usage).toMatchObject({ input_tokens: 100_000, output_tokens: 9_020, source: "reported" });
  expect(await service.json("request", "show", id)).toMatchObject({ report_rejected: null });
});

test("usage above every limit is in the receipt and in a metric, and the window is at its limit", async () => {
  const sums = async () => {
    const text = await metrics();
    const sumOf = (part: string) =>
      Number(new RegExp(`^usage_cost_total\\{class="${part}"\\} (\\S+)$`, "m").exec(text)?.[1] ?? 0) * 1e9;
    return { charged: sumOf("charged"), uncharged: sumOf("uncharged") };
  };
  const before = await sums();
  const { key } = await newMember(service, "tight");
  const { receipt } = await asked("/v1/chat/completions", { prompt_tokens: 5000, completion_tokens: words }, key);
  const rest = 5000 * 100 + words * 400 - tight;
  expect(receipt).toMatchObject({
    usage: { input_tokens: 5000, output_tokens: words },
    cost: { charged: dollars(tight), uncharged: dollars(rest) },
    windows: { session: { usage_percent_after: 100 } },
  });
  const after = await sums();
  expect(after.charged - before.charged).toBeCloseTo(tight, 0);
  expect(after.uncharged - before.uncharged).toBeCloseTo(rest, 0);
});

test("metrics have rejected reports by upstream and kind, and how far they are off; nothing is held in the end", async () => {
  const text = await metrics();
  expect(text).toMatch(/^usage_reports_rejected_total\{upstream="\S+",half="output",kind="above_cap"\} 3$/m);
  expect(text).toMatch(new RegExp(`^usage_report_divergence\\{model="${model}",statistic="p99"\\} 250000$`, "m"));
  expect((await lineOf(service, { event: "report_rejected" })).request_id).toMatch(/^req_[0-9a-f]{32}$/);
  await until(async () => /^usage_holds 0$/m.test(await metrics()), 10_000, "no hold");
  expect(await service.json("usage", "check")).toEqual([]);
});
