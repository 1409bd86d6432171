/** POST /v1/embeddings, /v1/rerank and /v2/rerank: the guarantees for clients, in front of an engine over HTTP. */
import { afterAll, describe, expect, test } from "bun:test";
import { ids_max } from "../../../src/features/operations/contract.ts";
import { checkedClient } from "../../clients/sdk.ts";
import {
  model as chatModel,
  engineKey,
  engineModel,
  errorOf,
  kindModels,
  refusalOf,
  startService,
} from "../../harness/engine.ts";
import { dollars } from "../../harness/money.ts";
import { newMember } from "../../harness/organizations.ts";
import { endedReceipt, requestIdOf } from "../../harness/receipts.ts";
import { startSimulator } from "../../harness/simulator.ts";
import { modelEntry } from "./model-entry.ts";

/** An engine that reports no usage. */
const silent = await startSimulator({ directives: "no-usage" });
/** An engine that cuts documents, and reports what is left of them. */
const cutting = Bun.serve({
  port: 0,
  fetch: () =>
    Response.json({
      results: [0, 1].map((index) => ({ index, relevance_score: 0.5 })),
      usage: { prompt_tokens: 30, total_tokens: 30 },
    }),
});
const [unreported, long] = ["acme/silent-1", "acme/long-1"];
const [unreportedRank, countedRank, cutRank] = ["acme/silent-rank-1", "acme/counted-rank-1", "acme/cut-rank-1"];
const service = await startService({
  hasKinds: true,
  upstream: `dialect: generic\n  silent:\n    url: "${silent.url}"\n  cutting:\n    url: "http://127.0.0.1:${cutting.port}/v1"`,
  engine: { directives: "" },
  // Room for 10,000 tokens.
  plans: { small: "{ session: 1000000 }" },
  extraModels: [
    modelEntry(unreported, "embedding", "silent"),
    modelEntry(long, "embedding", "silent", { context_window: 262_144 }),
    modelEntry(unreportedRank, "rerank", "silent"),
    modelEntry(countedRank, "rerank", "silent", { tokenizer: "o200k_harmony" }),
    modelEntry(cutRank, "rerank", "cutting"),
  ].join(""),
});
afterAll(async () => {
  await service.stop();
  await cutting.stop(true);
  await silent.stop();
}, 60_000);

const { embedding: embedder, rerank: ranker } = kindModels;
const [embeddings, rerank] = ["/v1/embeddings", "/v1/rerank"];
const embed = (body: object) => service.post(embeddings, { model: embedder, ...body });
const rank = (body: object, path = rerank) => service.post(path, { model: ranker, ...body });
const asked = () => service.engine.requests.at(-1)?.body as Record<string, unknown>;
const requests = () => service.engine.counts.requests;

interface Answer {
  usage: { prompt_tokens: number; total_tokens: number };
}
interface Embedded extends Answer {
  data: { object: string; index: number; embedding: number[] | string }[];
}
interface Ranked extends Answer {
  id: string;
  results: { index: number; relevance_score: number; document?: { text: string } }[];
}

async function answerOf<One extends Answer>(asking: Promise<Response>): Promise<One> {
  const response = await asking;
  expect(response.status).toBe(200);
  return (await response.json()) as One;
}
test("a null means that the field is absent: no engine is sent one", async () => {
  await embedded({ input: "a", dimensions: null, encoding_format: null, user: null });
  expect(asked()).toEqual({ model: engineModel, input: "a" });
  await ranked({ query: "a", documents: ["b"], top_n: null, return_documents: null });
  expect(asked()).toEqual({ model: engineModel, query: "a", documents: ["b"] });
});

const embedded = (body: object) => answerOf<Embedded>(embed(body));
const ranked = (body: object, path?: string) => answerOf<Ranked>(rank(body, path));

/** The engine's own response to the same request. */
const direct = <One extends Answer>(path: string, body: object) =>
  answerOf<One>(
    fetch(service.engine.url + path, {
      method: "POST",
      headers: { authorization: `Bearer ${engineKey}`, "content-type": "application/json" },
      body: JSON.stringify({ ...body, model: engineModel }),
    }),
  );

describe("embeddings", () => {
  test("have the vector of each input, the public model id and the engine's count", async () => {
    const answer = await embedded({ input: ["The tide is out.", "The tide is in."] });
    const usage = { prompt_tokens: 8, total_tokens: 8 };
    expect(answer).toMatchObject({ object: "list", model: embedder, usage });
    expect(answer.data).toMatchObject([0, 1].map((index) => ({ object: "embedding", index })));
    const [first, second] = answer.data.map(({ embedding }) => embedding as number[]);
    expect(Math.hypot(...first!)).toBeCloseTo(1, 5);
    expect(first).not.toEqual(second);
    expect((await embedded({ input: "The tide is out." })).data[0]?.embedding).toEqual(first);
  });

  test("have the engine's bytes of every vector, and nothing that it says beyond the contract", async () => {
    const body = { input: ["one", "two", "three"], dimensions: 8 };
    const answer = await embedded(body);
    expect(answer.data).toEqual((await direct<Embedded>("/embeddings", body)).data);
    expect(Object.keys(answer)).toEqual(["object", "data", "model", "usage"]);
  });

  test("of token ids are asked for as they are, and counted exactly", async () => {
    const input = [
      [1, 2, 3],
      [4, 5],
    ];
    expect((await embedded({ input })).usage).toEqual({ prompt_tokens: 5, total_tokens: 5 });
    expect(asked().input).toEqual(input);
    expect((await embedded({ input: [7, 8, 9] })).data).toHaveLength(1);
  });

  test("of as many token ids as LangChain sends at a time, and of the longest list, are asked for", async () => {
    const lists = Array.from({ length: 1_000 }, () => Array.from({ length: 390 }, (_, at) => 10_000 + at));
    const { data, usage } = await embedded({ input: lists, dimensions: 1 });
    expect([data.length, usage.prompt_tokens]).toEqual([1_000, 390_000]);
    const longest = { model: long, input: Array.from({ length: ids_max }, (_, at) => at) };
    expect((await embedded(longest)).usage.prompt_tokens).toBe(ids_max);
    const beyond = await embed({ input: Array.from({ length: 2_000 }, () => Array(300).fill(1)) });
    expect((await refusalOf(beyond)).slice(0, 2)).toEqual([413, "request_too_large"]);
  });

  test("are asked for by the engine's name of the model, and without the user", async () => {
    const body = { input: "hello", dimensions: 16, encoding_format: "float", input_type: "query" };
    await embedded({ ...body, user: "u-1" });
    expect(asked()).toEqual({ ...body, model: engineModel });
  });

  test("are counted by token ids exactly, and by the size of texts, if the engine reports nothing", async () => {
    for (const [input, prompt_tokens, source] of [
      [[[1, 2, 3], [4]], 4, "counted"],
      ["a text of some length", expect.any(Number), "estimated"],
    ] as const) {
      const response = await service.post(embeddings, { model: unreported, input });
      const { usage } = (await response.json()) as Answer;
      expect(usage).toEqual({ prompt_tokens, total_tokens: prompt_tokens });
      expect(usage.prompt_tokens).toBeGreaterThan(0);
      expect(await endedReceipt(service, requestIdOf(response))).toMatchObject({ usage: { source } });
    }
  });

  test("cost nothing where the engine refuses, which the client reads as its own refusal", async () => {
    const response = await embed({ input: "[simulator: status=503] hello" });
    expect(response.status).toBe(503);
    expect(await endedReceipt(service, requestIdOf(response))).toMatchObject({ cost: { charged: dollars(0) } });
  });

  test("are not repeated by an idempotency key: it is refused in words", async () => {
    const headers = { "idempotency-key": "k1" };
    const response = await service.post(embeddings, { model: embedder, input: "a" }, { headers });
    expect(await refusalOf(response)).toEqual([400, "unsupported_feature", "idempotency-key"]);
  });

  test("are read by OpenAI's SDK as floats, as base64 and for several inputs, unchanged", async () => {
    const client = checkedClient(service);
    const body = { model: embedder, input: ["a", "b"] };
    const floats = await client.embeddings.create({ ...body, encoding_format: "float" });
    const packed = await client.embeddings.create(body);
    expect(asked().encoding_format).toBe("base64");
    expect(packed.data.map(({ embedding }) => [...embedding])).toEqual(floats.data.map(({ embedding }) => embedding));
    expect(floats.usage.prompt_tokens).toBe(2);
  });
});

const query = "When is the tide out?";
const documents = ["Boats lie in the harbour.", "The tide is out at noon.", "Noon is when bells ring."];

describe("a ranking", () => {
  test("has the engine's order and scores, our id, the public model id and the engine's count", async () => {
    const said = await direct<Ranked>("/rerank", { query, documents, return_documents: false });
    const answer = await ranked({ query, documents });
    expect(answer.results).toEqual(said.results);
    expect(answer.results[0]?.index).toBe(1);
    expect(answer).toMatchObject({ object: "list", model: ranker, usage: said.usage });
    expect(answer.id).toMatch(/^rerank-[0-9a-f]{32}$/);
  });

  test("is the same under Cohere's path of the second version", async () => {
    const { id: _, ...first } = await ranked({ query, documents, top_n: 2 });
    const { id: __, ...second } = await ranked({ query, documents, top_n: 2 }, "/v2/rerank");
    expect(second).toEqual(first);
    expect(first.results).toHaveLength(2);
  });

  test("has the documents only if they are asked for, whatever the engine sends", async () => {
    const without = await ranked({ query, documents });
    expect(without.results.map(({ document }) => document)).toEqual([undefined, undefined, undefined]);
    const objects = documents.map((text) => ({ text }));
    const { results } = await ranked({ query, documents: objects, return_documents: true, top_n: 9 });
    expect(results.map(({ index, document }) => document?.text === documents[index])).toEqual([true, true, true]);
  });

  test("is asked for with texts alone, and with none of what is ours to do", async () => {
    await ranked({ query, documents: [{ text: "a" }, "b"], return_documents: true, max_tokens_per_doc: 64 });
    expect(asked()).toEqual({ model: engineModel, query, documents: ["a", "b"], max_tokens_per_doc: 64 });
  });
});

describe("a document that is far longer than the model's context", () => {
  const long = { query, documents: ["Geese. ".repeat(20_000), "No."] };

  test("is ranked where the engine is asked to cut it, and refused elsewhere", async () => {
    expect((await ranked({ ...long, max_tokens_per_doc: 512 })).results).toHaveLength(2);
    expect(asked().max_tokens_per_doc).toBe(512);
    const tooLong = [400, "context_length_exceeded"];
    for (const more of [{}, { max_tokens_per_doc: 100_000 }])
      expect((await refusalOf(await rank({ ...long, ...more }))).slice(0, 2)).toEqual(tooLong);
  });

  test("is held as a whole, because an engine may ignore the cut", async () => {
    const { key } = await newMember(service, "small");
    const body = { model: ranker, ...long, max_tokens_per_doc: 512 };
    const response = await service.post(rerank, body, { key });
    expect((await refusalOf(response)).slice(0, 2)).toEqual([429, "usage_limit_reached"]);
    const short = await service.post(rerank, { ...body, documents }, { key });
    expect(short.status).toBe(200);
  });

  test("teaches nothing about how many tokens a text has, if the engine reports what it cut", async () => {
    const ask = { ...long, model: cutRank };
    for (let round = 0; round < 10; round++)
      expect((await endedReceipt(service, requestIdOf(await rank({ ...ask, max_tokens_per_doc: 16 })))).usage).toEqual(
        expect.objectContaining({ input_tokens: 30, source: "reported" }),
      );
    expect((await refusalOf(await rank(ask))).slice(0, 2)).toEqual([400, "context_length_exceeded"]);
  });

  test("is charged by no more than the context, if the engine reports nothing", async () => {
    const response = await rank({ ...long, model: unreportedRank, max_tokens_per_doc: 512 });
    const { usage } = await endedReceipt(service, requestIdOf(response));
    expect([usage.input_tokens, usage.source]).toEqual([2 * 8192, "estimated"]);
  });

  test("is charged by no more than the context, if the model's tokenizer counts it", async () => {
    const usageOf = async () => {
      const response = await rank({ ...long, model: countedRank, max_tokens_per_doc: 512 });
      return (await endedReceipt(service, requestIdOf(response))).usage;
    };
    // A worker that gets no time within its second, because the machine is busy, leaves the estimate.
    let usage = await usageOf();
    for (let attempt = 0; attempt < 5 && usage.source === "estimated"; attempt++) usage = await usageOf();
    expect([usage.input_tokens, usage.source]).toEqual([2 * 8192, "counted"]);
  }, 60_000);
});

for (const [what, path, body, code, param] of [
  ["an empty text", embeddings, { input: "" }, "invalid_value", "input"],
  ["an empty list", embeddings, { input: [] }, "invalid_value", "input"],
  ["an empty text in a list", embeddings, { input: ["a", ""] }, "invalid_value", "input[1]"],
  ["2,049 texts", embeddings, { input: Array(2049).fill("a") }, "invalid_value", "input"],
  ["a mixed list", embeddings, { input: ["a", 1] }, "invalid_value", "input[1]"],
  ["no input", embeddings, {}, "missing_field", "input"],
  ["an unknown format", embeddings, { input: "a", encoding_format: "int8" }, "invalid_value", "encoding_format"],
  ["an unknown field", embeddings, { input: "a", inputs: "b" }, "unknown_field", "inputs"],
  ["no documents", rerank, { query, documents: [] }, "invalid_value", "documents"],
  ["a document without text", rerank, { query, documents: [{ title: "a" }] }, "missing_field", "documents[0].text"],
  ["no query", rerank, { documents }, "missing_field", "query"],
  ["none of the best", rerank, { query, documents, top_n: 0 }, "invalid_value", "top_n"],
  ["fields of documents", rerank, { query, documents, rank_fields: ["a"] }, "unsupported_feature", "rank_fields"],
] as const)
  test(`a request to ${path} with ${what} is refused by name, and no engine is asked`, async () => {
    const before = requests();
    const model = path === embeddings ? embedder : ranker;
    const [status, said, at] = await refusalOf(await service.post(path, { model, ...body }));
    expect([status, said, at]).toEqual([400, code, param]);
    expect(requests()).toBe(before);
  });

for (const [path, body, served] of [
  [embeddings, { model: chatModel, input: "hello" }, "/v1/chat/completions"],
  [rerank, { model: embedder, query, documents }, embeddings],
  ["/v1/chat/completions", { model: embedder, messages: [{ role: "user", content: "hi" }] }, embeddings],
] as const)
  test(`a model of another kind is refused at ${path} with the path that serves it`, async () => {
    const wrong = await service.post(path, body);
    expect(wrong.status).toBe(400);
    const error = await errorOf(wrong);
    expect(error).toMatchObject({ code: "unsupported_feature", param: "model" });
    expect(error.message).toContain(`'${served}'`);
  });

test("a model of no name is 404", async () => {
  const refused = await service.post(embeddings, { model: "acme/none", input: "hi" });
  expect(await refusalOf(refused)).toEqual([404, "model_not_found", "model"]);
});
