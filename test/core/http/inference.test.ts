/**
 * Chat completions, Messages and Responses over real sockets: the requests that clients send, and the guarantees for
 * the answers, streamed and not.
 */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Message } from "../../../src/core/protocol/anthropic-messages/contract.ts";
import type { ResponseObject } from "../../../src/core/protocol/openai-responses/contract.ts";
import {
  eventsOf as dataOf,
  errorOf,
  model,
  plainModel,
  refusalOf,
  says,
  smallModel,
  startService,
  words,
} from "../../harness/engine.ts";
import { gathered, eventsOf as messagesEventsOf } from "../../harness/messages.ts";
import { endedReceipt, requestIdOf } from "../../harness/receipts.ts";
import { finalOf, eventsOf as responsesEventsOf } from "../../harness/responses.ts";

setDefaultTimeout(60_000);

const service = await startService({
  engine: { directives: "", namesModel: false },
  route: ", instructions: head",
  more: "messages: { keep_billing_line: true }",
});
afterAll(() => service.stop());

type Init = Parameters<typeof service.post>[2];
const chat = (body: object) => service.post("/v1/chat/completions", { model, ...body });
const message = (body: object, init: Init = {}) =>
  service.post("/v1/messages", { model, max_tokens: 1024, ...body }, init);
const response = (body: object) => service.post("/v1/responses", { model, ...body });
const json = async <Answer>(answer: Promise<Response>) => (await (await answer).json()) as Answer;
/** The body of the engine's latest request. */
const asked = () =>
  service.engine.requests.at(-1)?.body as Record<string, unknown> & { messages: { role: string; content: unknown }[] };
const broken = ["tps=100 cut-after=3", "malformed-after=3", "error-after=3", "no-finish no-done"];

test("near the end of a context an answer keeps its cap, though the estimate of its input leaves little room", async () => {
  const content = "word ".repeat(2_600);
  await message({ model: smallModel, max_tokens: 200, messages: says("", content) });
  expect(asked().max_tokens).toBe(200);
});

describe("a chat completion", () => {
  test("with a small cap comes from the engine in one piece, else as a stream, and the client sees no difference", async () => {
    expect((await chat({ messages: says(""), max_tokens: 16 })).status).toBe(200);
    expect(asked().stream).toBe(false);
    expect((await chat({ messages: says("") })).status).toBe(200);
    expect(asked()).toMatchObject({ stream: true, stream_options: { include_usage: true } });
  });

  test("as a stream opens with the role, ends with a reason, and has no usage that nobody asked for", async () => {
    const answer = await chat({ messages: says("echo", words(5)), stream: true });
    expect(answer.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    const chunks = (await dataOf(answer)).slice(0, -1).map((data) => JSON.parse(data));
    expect(chunks[0].choices[0].delta).toEqual({ role: "assistant", content: "" });
    expect(chunks.at(-1).choices[0].finish_reason).toBe("stop");
    expect(chunks.every((chunk) => !("usage" in chunk) && chunk.choices.length === 1)).toBe(true);
  });

  test("that is refused by the engine has its true status, and a body", async () => {
    for (const [directive, status, code] of [
      ["status=503", 503, "overloaded"],
      ["status=500", 503, "upstream_unavailable"],
      ["status=401", 503, "upstream_unavailable"],
      ["status=404", 503, "upstream_unavailable"],
      ["status=429 retry-after=7", 429, "capacity_exceeded"],
      ["context-length", 400, "context_length_exceeded"],
      ["html-error", 503, "upstream_unavailable"],
      ["wrong-content-type", 503, "upstream_unavailable"],
      ["cut-after=0", 503, "upstream_unavailable"],
      ["malformed-after=0", 503, "upstream_unavailable"],
      ["error-after=0", 503, "upstream_unavailable"],
    ] as const) {
      for (const stream of [true, false]) {
        const answer = await chat({ messages: says(directive), stream });
        expect([directive, answer.status, (await errorOf(answer)).code]).toEqual([directive, status, code]);
        if (status === 503) expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
        if (status === 429) expect(answer.headers.get("retry-after")).toBe("7");
      }
    }
  });

  test.each(broken)(
    "that breaks in the middle (%s) ends with an error, and never with a finish_reason",
    async (fault) => {
      const events = await dataOf(await chat({ messages: says(fault, words(10)), stream: true }));
      expect(events.at(-1)).toBe("[DONE]");
      expect(JSON.parse(events.at(-2) ?? "")).toMatchObject({ error: { code: "upstream_unavailable" } });
      expect(events.join("")).not.toContain('"finish_reason":"');
      expect((await chat({ messages: says(fault, words(10)) })).status).toBe(503);
    },
  );

  test("is the same whether a field is null or left out", async () => {
    const names = ["temperature", "stop", "tools", "stream", "max_tokens", "response_format"];
    const answer = await chat({ messages: says(""), ...Object.fromEntries(names.map((name) => [name, null])) });
    expect(answer.status).toBe(200);
    expect(asked()).not.toHaveProperty("temperature");
  });

  test("that asks for what the model cannot do is refused by the field's name, before any engine is asked", async () => {
    const before = service.engine.counts.requests;
    const image = { type: "image_url", image_url: { url: "https://x.test/a.png" } };
    for (const [body, param] of [
      [{ messages: says(""), tools: [{ type: "function", function: { name: "weather" } }] }, "tools"],
      [{ messages: [{ role: "user", content: [image] }] }, "messages[0].content[0]"],
    ] as const)
      expect(await refusalOf(await chat({ model: plainModel, ...body }))).toEqual([400, "unsupported_feature", param]);
    expect(service.engine.counts.requests).toBe(before);
  });
});

describe("a message", () => {
  const streamed = async (body: object) => messagesEventsOf(await message({ ...body, stream: true }));
  const started = async (body: object) => {
    const [start] = await streamed(body);
    if (start?.type !== "message_start") throw new Error("no message_start");
    return start.message.usage.input_tokens;
  };

  test("says the same streamed and not, and begins with an input count", async () => {
    const ask = { messages: says("reasoning=12 tokens=40 cached=4") };
    const { content, stop_reason, stop_sequence, usage } = await json<Message>(message(ask));
    expect<object>(gathered(await streamed(ask))).toEqual({ content, stop_reason, stop_sequence, usage });
    expect(await started(ask)).toBeGreaterThan(0);
  });

  test("begins with about what is booked in the end, of a model's first greeting too", async () => {
    const greeting = { model: plainModel, temperature: 1, max_tokens: 256, messages: says("", "hello") };
    const began = await started(greeting);
    const { usage: booked } = await json<Message>(message(greeting));
    expect(began / booked.input_tokens).toBeWithin(0.5, 1.75);
  });

  test("begins with what is booked where the client leaves before an engine reports", async () => {
    const leave = new AbortController();
    const answer = await message({ messages: says("tps=5 tokens=100"), stream: true }, { signal: leave.signal });
    const reader = answer.body!.getReader();
    const { value } = await reader.read();
    leave.abort();
    await reader.cancel().catch(() => {});
    const input_tokens = Number(/"input_tokens":(\d+)/.exec(new TextDecoder().decode(value))?.[1]);
    const receipt = await endedReceipt(service, requestIdOf(answer));
    expect(receipt).toMatchObject({ outcome: "cancelled", usage: { input_tokens } });
  });

  test("that its cap ends says max_tokens, and a cap is lowered to what the model can", async () => {
    const short = await json(message({ messages: says("echo", words(50)), max_tokens: 5 }));
    expect(short).toMatchObject({ stop_reason: "max_tokens", content: [{ text: words(5) }] });
    const capped = await json(message({ messages: says("tokens=300"), model: smallModel, max_tokens: 32_000 }));
    expect(capped).toMatchObject({ stop_reason: "max_tokens", usage: { output_tokens: 256 } });
  });

  test("keeps the billing line where the operator says so", async () => {
    const line = "x-anthropic-billing-header: cc_version=2.1.329.f01; cc_entrypoint=cli;";
    const system = [
      { type: "text", text: line },
      { type: "text", text: "You are an agent.", cache_control: { type: "ephemeral" } },
    ];
    expect((await message({ messages: says("echo", "hi"), system })).status).toBe(200);
    expect(JSON.stringify(asked())).toContain(line);
  });

  const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" } };
  test.each<[string, object | string, number, string, string, RegExp]>([
    ["no JSON", "{", 400, "invalid_request_error", "invalid_json", /^The request body/],
    [
      "an image for a model that cannot see",
      { model: plainModel, max_tokens: 9, messages: [{ role: "user", content: [image] }] },
      ...([400, "invalid_request_error", "unsupported_feature", /^messages\[0\]\.content\[0\]: /] as const),
    ],
    [
      "an engine that fails, streamed",
      { model, max_tokens: 9, messages: says("status=503"), stream: true },
      ...([503, "overloaded_error", "overloaded", /./] as const),
    ],
  ])("is refused in the form of Messages: %s", async (_, body, status, type, code, says) => {
    const refused = await service.post("/v1/messages", body);
    const error = { type, message: expect.stringMatching(says), details: { error_code: code } };
    expect([refused.status, await refused.json()]).toMatchObject([status, { error }]);
  });

  test("takes any version, any beta and any query", async () => {
    const headers = { "anthropic-version": "1999-01-01", "anthropic-beta": "never-heard-of-2030-01-01,x" };
    const ask = { model, max_tokens: 9, messages: says("echo") };
    expect((await service.post("/v1/messages?beta=true", ask, { headers })).status).toBe(200);
  });

  test.each(broken)("whose stream breaks in the middle (%s) ends with an error event", async (fault) => {
    const events = await streamed({ messages: says(`${fault} tokens=20 per-chunk=1`) });
    const types = events.map(({ type }) => type);
    expect(events.at(-1)).toMatchObject({ type: "error", error: { type: "overloaded_error" } });
    expect(types.filter((type) => type === "message_stop" || type === "message_delta")).toEqual([]);
  });
});

describe("a response", () => {
  const parameters = { type: "object", properties: { place: { type: "string" } }, required: ["place"] };
  const weather = { type: "function", name: "get_weather", description: "The weather at a place.", parameters };
  const streamed = async (body: object) => responsesEventsOf(await response({ ...body, stream: true }));

  test("says the same streamed and not", async () => {
    const input = says("reasoning=9 calls=2 text-with-calls", "weather");
    const ask = { input, tools: [weather], store: false };
    const shape = ({ output, usage, status }: ResponseObject) => ({
      output: output.map((item) => ({ ...item, id: "", ...(item.type === "function_call" ? { call_id: "" } : {}) })),
      usage,
      status,
    });
    const whole = await json<ResponseObject>(response(ask));
    const final = finalOf(await streamed(ask));
    expect(shape(final)).toEqual(shape(whole));
    expect(whole.output.map(({ type }) => type)).toEqual(["reasoning", "message", "function_call", "function_call"]);
    expect(final.completed_at).not.toBeNull();
  });

  test("is cut by its cap as incomplete, the last item with it; a cap is lowered to what the model can", async () => {
    for (const ask of [
      { input: says("echo", words(50)), max_output_tokens: 5 },
      { input: says("tokens=300"), max_output_tokens: 32_000, model: smallModel },
    ]) {
      for (const answer of [await json<ResponseObject>(response(ask)), finalOf(await streamed(ask))]) {
        expect(answer).toMatchObject({
          ...{ status: "incomplete", incomplete_details: { reason: "max_output_tokens" }, completed_at: null },
          output: [{ status: "incomplete" }],
        });
      }
    }
  });
});

const turns = [
  { role: "user", content: "one" },
  { role: "assistant", content: "two" },
  { role: "system", content: "Be kind." },
  { role: "user", content: "three" },
];
test.each<[string, object]>([
  ["/v1/chat/completions", { messages: [{ role: "system", content: "Be brief." }, ...turns] }],
  ["/v1/messages", { system: "Be brief.", messages: turns, max_tokens: 100 }],
  ["/v1/responses", { instructions: "Be brief.", input: turns }],
])(
  "%s, for an engine that takes system text at the head alone: the rest is told in the user's turn",
  async (at, body) => {
    expect((await service.post(at, { model, ...body })).status).toBe(200);
    const { messages } = asked();
    expect(messages.map(({ role }) => role)).toEqual(["system", "user", "assistant", "user"]);
    expect(messages[0]?.content).toBe("Be brief.");
    expect(JSON.stringify(messages[3]?.content)).toMatch(/<system>\\n+Be kind\.\\n+<\/system>.*three/);
  },
);
