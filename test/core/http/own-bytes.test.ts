/**
 * Which parts of a large body reach an engine in the caller's own bytes, over real sockets, and which parts are
 * serialized again.
 */
import { afterAll, afterEach, expect, setDefaultTimeout, test } from "bun:test";
import { gzipSync } from "node:zlib";
import { OwnBytes } from "../../../src/core/body/own-bytes.ts";
import { Call } from "../../../src/core/http/call.ts";
import { startSluice } from "../../harness/sluice.ts";
import { until } from "../../harness/until.ts";

setDefaultTimeout(60_000);

interface Asked {
  path: string;
  text: string;
  body: Record<string, unknown>;
}

const asked: Asked[] = [];
/** The engine's answers for models whose name begins with `slow` wait for this promise. */
let gate = Promise.withResolvers<void>();
/** An engine that fails for models whose name begins with `down`. */
const engine = Bun.serve({
  port: 0,
  async fetch(request) {
    const text = await request.text();
    const body = JSON.parse(text) as Record<string, unknown>;
    const { pathname: path } = new URL(request.url);
    asked.push({ path, text, body });
    if (String(body.model).startsWith("down")) return new Response("down", { status: 503 });
    if (String(body.model).startsWith("slow")) await gate.promise;
    const usage = { prompt_tokens: 20_000, completion_tokens: 1, input_tokens: 20_000, output_tokens: 1 };
    if (path.endsWith("/messages"))
      return Response.json({
        type: "message",
        id: "m",
        role: "assistant",
        content: [{ type: "text", text: "ok" }],
        stop_reason: "end_turn",
        usage,
      });
    const message = { role: "assistant", content: "ok" };
    return Response.json({ choices: [{ index: 0, message, finish_reason: "stop" }], usage });
  },
});

const url = `http://127.0.0.1:${engine.port}`;
const model = (id: string, routes: string) => `
  - id: acme/${id}
    created: 1790000000
    context_window: 131072
    max_output_tokens: 256
    capabilities: [tools]
    prices: { input: 0.1, output: 0.4 }
    routes: [${routes}]`;
const service = await startSluice({
  config: `
upstreams:
  canary-first: { url: "${url}" }
  canary-second: { url: "${url}" }
  canary-messages: { url: "${url}", protocol: anthropic-messages }
  canary-full: { url: "${url}", concurrent_max: 1 }
metering: { currency: USD }
models:${model("one", "{ upstream: canary-first, model: engine-one }")}${model(
    "two",
    "{ upstream: canary-first, model: down-one, priority: 0 }, { upstream: canary-second, model: engine-two, priority: 1 }",
  )}${model("full", "{ upstream: canary-full, model: slow-one }")}${model("translated", "{ upstream: canary-messages, model: engine-three }")}
plans: { pro: {} }
`,
  operatorsWords: ["canary-first"],
});
afterEach(() => void asked.splice(0));
afterAll(async () => {
  await service.stop();
  await engine.stop(true);
});

/** A text that makes the body so large that it is scanned (checked against limits before it is parsed). */
const long = "text \\n\\u00e9 ".repeat(9_000);
const messages = `[ {"role":"user",  "content":"${long}"},
  {"role":"assistant","content":"","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},
  {"role":"tool","tool_call_id":"c","content":"whole \\ud83d\\ude00"} ]`;
const tools = `[{"type":"function","function":{"name":"f","parameters":{"const":9007199254740993${" ".repeat(5_000)}}}}]`;
const chat = (model: string, fields: string) => `{"model":"acme/${model}",${fields}}`;
const ordinary = `"messages":${messages},"tools":${tools},"max_tokens":99,"user":"u","temperature":0.5`;

async function ask(text: string, headers: Record<string, string> = {}, path = "/v1/chat/completions"): Promise<number> {
  const body = headers["content-encoding"] === "gzip" ? gzipSync(text) : text;
  const answer = await service.fetch(path, {
    ...{ method: "POST", body },
    headers: { "content-type": "application/json", ...headers },
  });
  await answer.text();
  return answer.status;
}

const metrics = async () => (await service.fetch("/metrics")).text();

/**
 * The expected request to the engine for this body (whose cap is the model's highest): without `user`, with the
 * engine's model name, and not streamed.
 */
const question = (text: string, model: string) => {
  const { user: _, ...said } = JSON.parse(text) as Record<string, unknown>;
  return { ...said, model, stream: false };
};

test.each([
  ["as it is", {}],
  ["compressed", { "content-encoding": "gzip" }],
])("the conversation and the tools of a large body go on as they were written, %s", async (_, headers) => {
  const text = chat("one", ordinary);
  expect(await ask(text, headers)).toBe(200);
  expect(asked.map(({ body }) => body)).toEqual([question(text, "engine-one")]);
  expect(asked[0]?.text).toContain(messages);
  expect(asked[0]?.text).toContain("9007199254740993");
  expect(asked[0]?.text).not.toContain('"user":');
});

test("half a character is written anew as U+FFFD, since engines answer 500 to it", async () => {
  const text = chat("one", ordinary.replace("\\ude00", ""));
  expect(await ask(text)).toBe(200);
  expect(asked[0]?.text).not.toContain("\\ud83d");
  expect(asked[0]?.body.messages).toContainEqual({ role: "tool", tool_call_id: "c", content: "whole \ufffd" });
});

test("a model in escapes is the engine's model, and a cap is lowered to what the model has", async () => {
  const text = `{"m\\u006fdel":"acme\\/one","max_tok\\u0065ns":100000,"messages":${messages},"tools":${tools}}`;
  expect(await ask(text)).toBe(200);
  expect(asked[0]?.body).toMatchObject({ model: "engine-one", max_tokens: 256 });
  expect(asked[0]?.text).toContain(messages);
  expect(asked[0]?.text.match(/"model"|"max_tokens"/g)).toEqual(['"model"', '"max_tokens"']);
});

test("without a cap none is written", async () => {
  expect(await ask(chat("one", `"messages":${messages},"tools":${tools}`))).toBe(200);
  expect(asked[0]?.text).toContain(messages);
  expect(asked[0]?.body).not.toHaveProperty("max_tokens");
});

test("a second engine is asked the same, under its own name for the model", async () => {
  const text = chat("two", ordinary);
  expect(await ask(text)).toBe(200);
  expect(asked.map(({ body }) => body.model)).toEqual(["down-one", "engine-two"]);
  expect(asked[0]?.text).toContain(messages);
  for (const { body } of asked) expect(body).toEqual(question(text, body.model as string));
});

test("while it waits for room at an engine, a request does not hold them", async () => {
  gate = Promise.withResolvers();
  const text = chat("full", ordinary);
  const first = ask(text);
  await until(() => asked.length === 1, 10_000, "the engine to be asked");
  const second = ask(text);
  const waits = async () => /^upstream_queue_length\{model="acme\/full".*\} 1$/m.test(await metrics());
  await until(waits, 10_000, "the other to wait");
  gate.resolve();
  expect(await Promise.all([first, second])).toEqual([200, 200]);
  expect(asked.map((one) => one.text.includes(messages))).toEqual([true, false]);
  for (const { body } of asked) expect(body).toEqual(question(text, "slow-one"));
});

test("for an engine of another protocol all of it is translated", async () => {
  expect(await ask(chat("translated", ordinary))).toBe(200);
  const [{ path, body }] = asked as [Asked];
  expect(path).toBe("/v1/messages");
  expect(body).toMatchObject({ model: "engine-three", max_tokens: 99, tools: [{ name: "f" }] });
  expect((body.messages as unknown[])[0]).toEqual({
    role: "user",
    content: [{ type: "text", text: JSON.parse(`"${long}"`) as string }],
  });
});

test("and one that is refused reaches none", async () => {
  const text = chat("one", `${ordinary},"unknown":1`);
  expect(await ask(text)).toBe(400);
  expect(await ask(chat("none", ordinary))).toBe(404);
  expect(asked).toEqual([]);
});

test("the memory of its bytes ends with the request, whatever becomes of that", async () => {
  const connection = { address: () => "127.0.0.1", isLocal: () => true, keepOpen() {} };
  const call = new Call("req_1", new Request("http://node/v1/chat/completions"), "/v1/chat/completions", connection);
  const bytes = new TextEncoder().encode('{"messages":["a"]}');
  call.begins(new OwnBytes(bytes, [], { messages: ["a"] }));
  expect(bytes.byteLength).toBeGreaterThan(0);
  await call.finish();
  expect(bytes.byteLength).toBe(0);
});
