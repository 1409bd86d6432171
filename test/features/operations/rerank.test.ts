/** POST /v1/rerank and /v2/rerank: what a client may rely on, in front of an engine over HTTP. */
import { afterAll, describe, expect, test } from "bun:test";
import { engineKey, engineModel, errorOf, kindModels, refusalOf, startService } from "../../harness/engine.ts";
import { nanosOf } from "../../harness/money.ts";
import { endedReceipt, requestIdOf } from "../../harness/receipts.ts";

const service = await startService({ hasKinds: true, engine: { directives: "" } });
afterAll(() => service.stop(), 60_000);

const model = kindModels.rerank;
const rank = (body: object, path = "/v1/rerank") => service.post(path, { model, ...body });
const asked = () => service.engine.requests.at(-1)?.body as Record<string, unknown>;

interface Answer {
  id: string;
  object: string;
  model: string;
  results: { index: number; relevance_score: number; document?: { text: string } }[];
  usage: { prompt_tokens: number; total_tokens: number };
}

const query = "When is the tide out?";
const documents = ["Boats lie in the harbour.", "The tide is out at noon.", "Noon is when bells ring."];

async function answerTo(body: object, path?: string): Promise<Answer> {
  const response = await rank(body, path);
  expect(response.status).toBe(200);
  return (await response.json()) as Answer;
}

describe("an answer", () => {
  test("has the engine's order and scores, our id, the public model id and the engine's count", async () => {
    const direct = await fetch(`${service.engine.url}/rerank`, {
      method: "POST",
      headers: { authorization: `Bearer ${engineKey}`, "content-type": "application/json" },
      body: JSON.stringify({ model: engineModel, query, documents, return_documents: false }),
    });
    const said = (await direct.json()) as Answer;
    const answer = await answerTo({ query, documents });
    expect(answer.results).toEqual(said.results);
    expect(answer.results[0]?.index).toBe(1);
    expect(answer).toMatchObject({ object: "list", model, usage: said.usage });
    expect(answer.id).toMatch(/^rerank-[0-9a-f]{32}$/);
  });

  test("is the same under Cohere's path of the second version", async () => {
    const { id: _, ...first } = await answerTo({ query, documents, top_n: 2 });
    const { id: __, ...second } = await answerTo({ query, documents, top_n: 2 }, "/v2/rerank");
    expect(second).toEqual(first);
    expect(first.results).toHaveLength(2);
  });

  test("has the documents only if they are asked for, whatever the engine sends", async () => {
    const without = await answerTo({ query, documents });
    expect(without.results.map(({ document }) => document)).toEqual([undefined, undefined, undefined]);
    const objects = documents.map((text) => ({ text }));
    const { results } = await answerTo({ query, documents: objects, return_documents: true, top_n: 9 });
    expect(results.map(({ index, document }) => document?.text === documents[index])).toEqual([true, true, true]);
  });
});

test("engines get texts alone, and none of what is ours to do", async () => {
  await answerTo({ query, documents: [{ text: "a" }, "b"], return_documents: true, max_tokens_per_doc: 64 });
  expect(asked()).toEqual({ model: engineModel, query, documents: ["a", "b"], max_tokens_per_doc: 64 });
});

for (const [what, body, code, param] of [
  ["no documents", { query, documents: [] }, "invalid_value", "documents"],
  ["a document without text", { query, documents: [{ title: "a" }] }, "missing_field", "documents[0].text"],
  ["no query", { documents }, "missing_field", "query"],
  ["none of the best", { query, documents, top_n: 0 }, "invalid_value", "top_n"],
  ["fields of documents", { query, documents, rank_fields: ["a"] }, "unsupported_feature", "rank_fields"],
] as const)
  test(`a request with ${what} is refused by name`, async () => {
    expect(await refusalOf(await rank(body))).toEqual([400, code, param]);
  });

test("a model of another kind is refused with the path that serves it", async () => {
  const wrong = await service.post("/v1/rerank", { model: kindModels.embedding, query, documents });
  const { code, param, message } = await errorOf(wrong);
  expect([code, param]).toEqual(["unsupported_feature", "model"]);
  expect(message).toContain("'/v1/embeddings'");
});

test("the engine's count is charged, and a search where it has a price", async () => {
  const more = `metering: { currency: USD }
models:
  - id: acme/rank-2
    kind: rerank
    created: 1790000000
    context_window: 8192
    prices: { input: 0.001, search: 0.005 }
    routes: [{ upstream: simulator, model: sim }]`;
  const priced = await startService({ sluice: { config: more } });
  try {
    const many = Array(101).fill("a document");
    const response = await priced.post("/v1/rerank", { model: "acme/rank-2", query, documents: many });
    const { usage } = (await response.json()) as Answer;
    const receipt = await endedReceipt(priced, requestIdOf(response));
    expect(receipt).toMatchObject({ operation: "rerank", usage: { source: "reported" } });
    expect(nanosOf(receipt.cost.charged)).toBe(usage.prompt_tokens + 2 * 5000);
  } finally {
    await priced.stop();
  }
}, 120_000);
