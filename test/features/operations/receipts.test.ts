/**
 * Receipts of operations whose responses are passed on unchanged: the charge can be computed from the receipt alone.
 */
import { afterAll, expect, test } from "bun:test";
import type { RequestReceipt } from "../../../src/features/receipts/receipt-shape.ts";
import { engineModel, kindModels, startService, upstreamName } from "../../harness/engine.ts";
import { dollars, nanosOf } from "../../harness/money.ts";
import { endedReceipt, requestIdOf } from "../../harness/receipts.ts";
import { modelEntry } from "./model-entry.ts";

const searched = modelEntry("acme/rank-2", "rerank", upstreamName, {
  prices: { input: 0.0033, search: 0.0051 },
  routes: [{ upstream: upstreamName, model: engineModel }],
});
const service = await startService({ hasKinds: true, extraModels: searched });
afterAll(() => service.stop(), 60_000);

/**
 * The charge of a receipt in nanos: its counts of tokens and searches, each times its price and rounded up to a nano
 * (docs/design/usage.md, Receipts).
 */
function owed({ usage, prices }: RequestReceipt): number {
  const { input, cached_input, cache_write, output, search = { amount: "0" } } = prices!;
  const cost = (count: number, price: { amount: string }, of: number) =>
    Math.ceil((count * Math.round(Number(price.amount) * 1e6) * 1000) / of);
  const million = (count: number, price: { amount: string }) => cost(count, price, 1e6);
  const inputs = million(usage.input_tokens, input) + million(usage.cached_input_tokens, cached_input);
  const others = million(usage.cache_write_tokens, cache_write) + million(usage.output_tokens, output);
  return inputs + others + cost(usage.searches, search, 1000);
}

const input = ["The tide", "is out.", "Boats lie in the harbour."];
const documents = Array.from({ length: 101 }, (_, index) => `Document ${index}`);
const ids = [
  [1, 2, 3],
  [4, 5],
];

const chat = { model: "acme/writer-1", messages: [{ role: "user", content: "a" }] };
for (const [what, path, body, inputs, searches] of [
  ["texts", "/v1/embeddings", { model: kindModels.embedding, input }, 3, 0],
  ["one text", "/v1/embeddings", { model: kindModels.embedding, input: input[0] }, 1, 0],
  ["lists of token ids", "/v1/embeddings", { model: kindModels.embedding, input: ids }, 2, 0],
  ["a ranking without a price of searches", "/v1/rerank", { model: kindModels.rerank, query: "q", documents }, 101, 2],
  ["a ranking whose searches have a price", "/v2/rerank", { model: "acme/rank-2", query: "q", documents }, 101, 2],
  ["a completion", "/v1/completions", { model: kindModels.completion, prompt: "The tide" }, null, 0],
  ["a chat", "/v1/chat/completions", chat, null, 0],
] as const)
  test(`${what}: the charge can be recomputed from the receipt, which says how many inputs there were`, async () => {
    const response = await service.post(path, body);
    expect(response.status).toBe(200);
    const reported = ((await response.json()) as { usage: { prompt_tokens: number } }).usage;
    const receipt = await endedReceipt(service, requestIdOf(response));
    const usage = { source: "reported", searches };
    const operation = path.replace(/^.v\d./, "").replace("/", ".");
    expect(receipt).toMatchObject({ operation, model: body.model, outcome: "completed", input_count: inputs, usage });
    expect(receipt.usage.input_tokens + receipt.usage.cached_input_tokens).toBe(reported.prompt_tokens);
    expect(nanosOf(receipt.cost.charged)).toBeGreaterThan(0);
    expect(nanosOf(receipt.cost.charged)).toBe(owed(receipt));
    const shown = await service.json<{ input_count: number | null; usage: { searches: number } }>(
      "request",
      "show",
      receipt.id,
    );
    expect([shown.input_count, shown.usage.searches]).toEqual([inputs, searches]);
  });

test("what failed has no searches, and `request show` names the inputs and the searches of what did not", async () => {
  const failed = await service.post("/v1/rerank", {
    model: "acme/rank-2",
    query: "[simulator: status=503] q",
    documents: ["a"],
  });
  expect(failed.status).toBeGreaterThanOrEqual(500);
  const receipt = await endedReceipt(service, requestIdOf(failed));
  expect(receipt).toMatchObject({ input_count: 1, usage: { searches: 0 }, cost: { charged: dollars(0) } });
  const ranked = await service.post("/v1/rerank", { model: "acme/rank-2", query: "q", documents });
  const id = requestIdOf(ranked);
  await endedReceipt(service, id);
  const { stdout } = await service.cli("request", "show", id);
  expect(stdout).toMatch(/inputs\s+101\n/);
  expect(stdout).toMatch(/searches\s+2\n/);
});
