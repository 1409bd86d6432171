/** POST /v1/embeddings: what a client may rely on, in front of an engine over HTTP. */
import { afterAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
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
import { endedReceipt, requestIdOf } from "../../harness/receipts.ts";

const service = await startService({ hasKinds: true, engine: { directives: "" } });
afterAll(() => service.stop(), 60_000);

const model = kindModels.embedding;
const path = "/v1/embeddings";
const embed = (body: object) => service.post(path, { model, ...body });
const asked = () => service.engine.requests.at(-1)?.body as Record<string, unknown>;
const requests = () => service.engine.counts.requests;

interface Answer {
  object: string;
  data: { object: string; index: number; embedding: number[] | string }[];
  model: string;
  usage: { prompt_tokens: number; total_tokens: number };
}

async function answerTo(body: object): Promise<Answer> {
  const response = await embed(body);
  expect(response.status).toBe(200);
  return (await response.json()) as Answer;
}

function receiptOf(response: Response) {
  return endedReceipt(service, requestIdOf(response));
}

describe("an answer", () => {
  test("has the vector of each input, the public model id and the engine's count", async () => {
    const answer = await answerTo({ input: ["The tide is out.", "The tide is in."] });
    expect(answer).toMatchObject({ object: "list", model, usage: { prompt_tokens: 8, total_tokens: 8 } });
    expect(answer.data.map(({ object, index }) => ({ object, index }))).toEqual([
      { object: "embedding", index: 0 },
      { object: "embedding", index: 1 },
    ]);
    const [first, second] = answer.data.map(({ embedding }) => embedding as number[]);
    expect(Math.hypot(...first!)).toBeCloseTo(1, 5);
    expect(first).not.toEqual(second);
    expect((await answerTo({ input: "The tide is out." })).data[0]?.embedding).toEqual(first);
  });

  test("has the engine's bytes of every vector", async () => {
    const body = { input: ["one", "two", "three"], dimensions: 8 };
    const { data } = await answerTo(body);
    const direct = await fetch(`${service.engine.url}/embeddings`, {
      method: "POST",
      headers: { authorization: `Bearer ${engineKey}`, "content-type": "application/json" },
      body: JSON.stringify({ ...body, model: engineModel }),
    });
    const said = (await direct.json()) as Answer;
    expect(data).toEqual(said.data);
  });

  test("leaves out what the engine says beyond the contract", async () => {
    const text = await (await embed({ input: "hello" })).text();
    expect(Object.keys(JSON.parse(text))).toEqual(["object", "data", "model", "usage"]);
  });
});

describe("an input", () => {
  test("of token ids is passed on as it is, and counted exactly", async () => {
    const response = await embed({
      input: [
        [1, 2, 3],
        [4, 5],
      ],
    });
    expect(((await response.json()) as Answer).usage).toEqual({ prompt_tokens: 5, total_tokens: 5 });
    expect(asked().input).toEqual([
      [1, 2, 3],
      [4, 5],
    ]);
    expect(((await (await embed({ input: [7, 8, 9] })).json()) as Answer).data).toHaveLength(1);
  });

  test("is sent with the engine's name of the model, and without the user", async () => {
    await answerTo({ input: "hello", user: "u-1", dimensions: 16, encoding_format: "float", input_type: "query" });
    expect(asked()).toEqual({
      model: engineModel,
      input: "hello",
      dimensions: 16,
      encoding_format: "float",
      input_type: "query",
    });
  });

  for (const [what, body, code, param] of [
    ["an empty text", { input: "" }, "invalid_value", "input"],
    ["an empty list", { input: [] }, "invalid_value", "input"],
    ["an empty text in a list", { input: ["a", ""] }, "invalid_value", "input"],
    ["2,049 texts", { input: Array(2049).fill("a") }, "invalid_value", "input"],
    ["a mixed list", { input: ["a", 1] }, "invalid_value", "input"],
    ["no input", {}, "missing_field", "input"],
    ["an unknown format", { input: "a", encoding_format: "int8" }, "invalid_value", "encoding_format"],
    ["an unknown field", { input: "a", inputs: "b" }, "unknown_field", "inputs"],
  ] as const)
    test(`that is wrong (${what}) is refused by name, and no engine is asked`, async () => {
      const before = requests();
      const response = await embed(body);
      const [status, said, at] = await refusalOf(response);
      expect([status, said]).toEqual([400, code]);
      expect(String(at)).toStartWith(param);
      expect(requests()).toBe(before);
    });
});

describe("a model", () => {
  test("of another kind is refused with the path that serves it", async () => {
    const wrong = await service.post(path, { model: chatModel, input: "hello" });
    expect(wrong.status).toBe(400);
    const error = await errorOf(wrong);
    expect(error).toMatchObject({ code: "unsupported_feature", param: "model" });
    expect(error.message).toContain("'/v1/chat/completions'");
    const chat = await service.post("/v1/chat/completions", { model, messages: [{ role: "user", content: "hi" }] });
    expect(chat.status).toBe(400);
    expect((await errorOf(chat)).message).toContain("'/v1/embeddings'");
  });

  test("of no name is 404", async () => {
    expect(await refusalOf(await service.post(path, { model: "acme/none", input: "hi" }))).toEqual([
      404,
      "model_not_found",
      "model",
    ]);
  });
});

describe("metering", () => {
  test("charges the engine's count of the input, once, and the receipt says so", async () => {
    const response = await embed({ input: "hello there, engine" });
    const { usage } = (await response.json()) as Answer;
    const receipt = await receiptOf(response);
    expect(receipt).toMatchObject({
      operation: "embeddings",
      model,
      outcome: "completed",
      usage: { input_tokens: usage.prompt_tokens, output_tokens: 0, source: "reported" },
      cost: { charged: dollars(usage.prompt_tokens * 100) },
    });
  });

  test("counts token ids exactly, and texts by their size, if the engine reports nothing", async () => {
    const ids = await embed({ input: [[1, 2, 3], [4]], user: "x" });
    expect(ids.status).toBe(200);
    const silent = await startService({ hasKinds: true, engine: { directives: "no-usage" } });
    try {
      const counted = await silent.post(path, { model, input: [[1, 2, 3], [4]] });
      expect(((await counted.json()) as Answer).usage).toEqual({ prompt_tokens: 4, total_tokens: 4 });
      const estimated = await silent.post(path, { model, input: "a text of some length" });
      const { usage } = (await estimated.json()) as Answer;
      expect(usage.prompt_tokens).toBeGreaterThan(0);
      for (const [response, source] of [
        [counted, "counted"],
        [estimated, "estimated"],
      ] as const) {
        const receipt = await endedReceipt(silent, requestIdOf(response));
        expect(receipt).toMatchObject({ usage: { source } });
      }
    } finally {
      await silent.stop();
    }
  }, 120_000);

  test("charges nothing for a refusal by the engine, which the client reads as its own", async () => {
    const response = await embed({ input: "[simulator: status=503] hello" });
    expect(response.status).toBe(503);
    expect((await receiptOf(response)).cost).toMatchObject({ charged: dollars(0) });
  });
});

test("an idempotency key is refused in words", async () => {
  const response = await service.post(path, { model, input: "a" }, { headers: { "idempotency-key": "k1" } });
  expect(await refusalOf(response)).toEqual([400, "unsupported_feature", "idempotency-key"]);
});

test("OpenAI's SDK reads floats, base64 and several inputs, unchanged", async () => {
  const client = new OpenAI({
    baseURL: `${service.url}/v1`,
    apiKey: service.key,
    maxRetries: 0,
    fetch: (url, init) => service.fetch(String(url).slice(service.url.length), init),
  });
  const floats = await client.embeddings.create({ model, input: ["a", "b"], encoding_format: "float" });
  const packed = await client.embeddings.create({ model, input: ["a", "b"] });
  expect(asked().encoding_format).toBe("base64");
  expect(packed.data.map(({ embedding }) => [...embedding])).toEqual(floats.data.map(({ embedding }) => embedding));
  expect(floats.usage.prompt_tokens).toBe(2);
});
