/**
 * The official Anthropic SDK for TypeScript, unchanged except for base URL, key and model ID, against the service in
 * front of an engine over HTTP: the SDK's features work, and each refusal is an error of the class that the SDK
 * documents.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import Anthropic, {
  APIError,
  APIUserAbortError,
  AuthenticationError,
  BadRequestError,
  ContentTooLargeError,
  InternalServerError,
  NotFoundError,
  PermissionDeniedError,
  RateLimitError,
} from "@anthropic-ai/sdk";
import { betaZodTool } from "@anthropic-ai/sdk/helpers/beta/zod";
import { zodOutputFormat } from "@anthropic-ai/sdk/helpers/zod";
import type {
  ContentBlock,
  ContentBlockParam,
  MessageCreateParamsNonStreaming,
} from "@anthropic-ai/sdk/resources/messages";
import { z } from "zod";
import { model, plainModel, type Service, says, smallModel, startService, words } from "../harness/engine.ts";
import { until } from "../harness/until.ts";
import { checkedFetch, thrown } from "./sdk.ts";

setDefaultTimeout(60_000);

let service: Service;
/** The SDK's client. Every response to it is checked against the contract. */
let client: Anthropic;
beforeAll(async () => {
  service = await startService({ engine: { directives: "", namesModel: false } });
  client = clientWith(service.key);
});
afterAll(async () => {
  await service.stop();
});

function clientWith(apiKey: string, maxRetries = 0): Anthropic {
  return new Anthropic({ baseURL: service.url, apiKey, maxRetries, fetch: checkedFetch(service) });
}

const asks = (directives: string, text = "hello there"): MessageCreateParamsNonStreaming => ({
  model,
  max_tokens: 1024,
  messages: says(directives, text),
});
const requests = () => service.engine.counts.requests;
const textIn = (content: ContentBlock[]) => content.map((block) => (block.type === "text" ? block.text : "")).join("");

const weather = {
  name: "get_weather",
  description: "The weather at a place.",
  input_schema: { type: "object" as const, properties: { place: { type: "string" } }, required: ["place"] },
};

describe("models", () => {
  test("are listed at once, or page by page in both directions", async () => {
    const all = [model, plainModel, smallModel];
    expect((await client.models.list()).data.map(({ id }) => id)).toEqual(all);
    const first = await client.models.list({ limit: 2 });
    expect([first.data.length, first.has_more, first.last_id]).toEqual([2, true, plainModel]);
    const listed: string[] = [];
    for await (const { id, type } of client.models.list({ limit: 2 })) {
      expect(type).toBe("model");
      listed.push(id);
    }
    expect(listed).toEqual(all);
    const backwards: string[] = [];
    for await (const { id } of client.models.list({ limit: 1, before_id: smallModel })) backwards.push(id);
    expect(backwards).toEqual([plainModel, model]);
  });

  test("are retrieved by an id with a slash in it", async () => {
    expect(await client.models.retrieve(model)).toMatchObject({ id: model, type: "model" });
  });
});

describe("messages", () => {
  test("are created, with text, usage and the request id", async () => {
    const message = await client.messages.create({ ...asks("echo", words(7)), system: "Be brief." });
    expect(textIn(message.content)).toBe(words(7));
    const usage = { output_tokens: 7, cache_read_input_tokens: 0 };
    expect(message).toMatchObject({ stop_reason: "end_turn", stop_sequence: null, model, usage });
    expect(message.id).toMatch(/^msg_[0-9a-f]{32}$/);
    expect(message._request_id).toMatch(/^req_[0-9a-f]{32}$/);
  });

  test("with the raw response beside them", async () => {
    const { data, response, request_id } = await client.messages.create(asks("echo")).withResponse();
    expect(response.headers.get("x-service-request-id")).toBe(request_id ?? "none");
    expect(response.headers.get("x-service-usage-week-percent")).toBe("0");
    expect(data.model).toBe(model);
  });

  test("see images", async () => {
    const data = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
    const content: ContentBlockParam[] = [
      { type: "image", source: { type: "base64", media_type: "image/png", data } },
      { type: "image", source: { type: "url", url: "https://images.test/a.png" } },
      { type: "text", text: "What are these?" },
    ];
    const message = await client.messages.create({ ...asks(""), messages: [{ role: "user", content }] });
    expect(textIn(message.content)).toContain("I was given 2 image(s).");
  });

  test("are counted", async () => {
    const short = await client.messages.countTokens({ model, messages: says("", "hi") });
    const long = await client.messages.countTokens({ model, messages: says("", words(500)), tools: [weather] });
    expect(short.input_tokens).toBeGreaterThan(0);
    expect(long.input_tokens).toBeGreaterThan(short.input_tokens + 400);
  });

  test("hold a value of the caller's schema", async () => {
    const City = z.object({ city: z.string(), people: z.number().int(), capital: z.boolean() });
    const message = await client.messages.parse({
      ...asks("", "Name a city."),
      output_config: { format: zodOutputFormat(City) },
    });
    expect(() => City.parse(message.parsed_output)).not.toThrow();
  });
});

describe("a stream", () => {
  test("is iterated event by event", async () => {
    const types: string[] = [];
    for await (const event of await client.messages.create({ ...asks("echo", words(3)), stream: true }))
      types.push(event.type);
    expect(types[0]).toBe("message_start");
    expect(types.slice(-2)).toEqual(["message_delta", "message_stop"]);
  });

  test("is gathered by the helper, thinking, text and tools", async () => {
    let text = "";
    const stream = client.messages
      .stream({ ...asks("reasoning=6 calls=2 text-with-calls", "go"), tools: [weather, { ...weather, name: "time" }] })
      .on("text", (delta) => {
        text += delta;
      });
    const message = await stream.finalMessage();
    expect(message.content.map((block) => block.type)).toEqual(["thinking", "text", "tool_use", "tool_use"]);
    expect(text).toBe(textIn(message.content));
    expect(
      message.content.flatMap((block) => (block.type === "tool_use" ? Object.keys(block.input as object) : [])),
    ).toEqual(["place", "place"]);
    expect(message.stop_reason).toBe("tool_use");
    expect(stream.request_id).toMatch(/^req_[0-9a-f]{32}$/);
  });

  test("that breaks off is an error, and no end", async () => {
    const error = await thrown(
      client.messages.stream(asks("tokens=30 per-chunk=1 tps=100 cut-after=9")).finalMessage(),
    );
    expect(error).toBeInstanceOf(APIError);
    expect((error as APIError).type as string).toBe("overloaded_error");
  });

  test("that is left stops the engine", async () => {
    const before = service.engine.counts.clients_left;
    const stream = client.messages.stream(asks("tokens=3000 tps=40"));
    stream.once("text", () => stream.abort());
    expect(await thrown(stream.finalMessage())).toBeInstanceOf(APIUserAbortError);
    await until(() => service.engine.counts.clients_left > before, 5_000, "the engine to be left");
  });
});

describe("tools", () => {
  test("two calls and their results, over two turns", async () => {
    const tools = [weather, { ...weather, name: "get_time" }];
    const asked = asks("calls=2", "weather and time");
    const { content } = await client.messages.create({ ...asked, tools });
    const calls = content.filter((block) => block.type === "tool_use");
    expect(calls).toHaveLength(2);
    const results = calls.map(({ id, name }) => {
      return { type: "tool_result" as const, tool_use_id: id, content: `result of ${name}` };
    });
    const told = [
      { role: "assistant" as const, content },
      { role: "user" as const, content: results },
    ];
    const message = await client.messages.create({ ...asked, messages: [...asked.messages, ...told], tools });
    for (const said of ["result of get_weather", "result of get_time"]) expect(textIn(message.content)).toContain(said);
  });

  test.each([false, true])("the tool runner runs them, though threads are refused (stream: %p)", async (stream) => {
    const asked: string[] = [];
    const tool = (name: string) =>
      betaZodTool({
        name,
        description: `Runs ${name}.`,
        inputSchema: z.object({ place: z.string() }),
        run: ({ place }) => {
          asked.push(`${name} ${typeof place}`);
          return `${name} has run`;
        },
      });
    const before = requests();
    const done = await client.beta.messages.toolRunner({
      ...asks("calls=2", "run both"),
      stream,
      tools: [tool("first"), tool("second")],
    });
    expect(asked).toEqual(["first string", "second string"]);
    const [block] = done.content;
    expect(block?.type === "text" && block.text).toContain("first has run");
    // The requests that were refused because of their thread reached no engine, so the engine got one request per turn.
    expect(requests() - before).toBe(2);
  });
});

describe("a refusal", () => {
  type Case = [
    name: string,
    ask: () => PromiseLike<unknown>,
    kind: abstract new (...parts: never[]) => APIError,
    error: [status: number, code: string],
  ];
  const unknown = { ...asks(""), model: "acme/none" };
  const notFound: [status: number, code: string] = [404, "model_not_found"];
  const odd = { ...asks(""), messages: [{ role: "robot" as "user", content: "x" }] };
  const beyond = { ...asks(""), model: plainModel, tools: [weather] };
  const large = () => asks("", "x".repeat(33 * 1024 * 1024));
  const create = (body: MessageCreateParamsNonStreaming, through = client) => through.messages.create(body);
  const cases: Case[] = [
    ["garbage for a key", () => create(asks(""), clientWith("garbage")), AuthenticationError, [401, "invalid_api_key"]],
    ["a field", () => create(odd), BadRequestError, [400, "invalid_value"]],
    ["a model", () => create(unknown), NotFoundError, notFound],
    ["a model, streamed", () => client.messages.stream(unknown).finalMessage(), NotFoundError, notFound],
    ["a model's record", () => client.models.retrieve("acme/none"), NotFoundError, notFound],
    ["a feature", () => create(beyond), BadRequestError, [400, "unsupported_feature"]],
    ["an engine that is full", () => create(asks("status=429")), RateLimitError, [429, "capacity_exceeded"]],
    ["an engine that fails", () => create(asks("status=500")), InternalServerError, [503, "upstream_unavailable"]],
    ["a count", () => client.messages.countTokens({ model: "acme/none", messages: says("") }), NotFoundError, notFound],
    ["a batch, which there is not", () => client.messages.batches.list(), NotFoundError, [404, "route_not_found"]],
    ["too large a body", () => create(large()), ContentTooLargeError, [413, "request_too_large"]],
  ];
  test.each(cases)(
    "of %s is an error of its class, with its code and its request id",
    async (_name, ask, kind, statusAndCode) => {
      const error = (await thrown(ask())) as APIError;
      expect(error).toBeInstanceOf(kind);
      expect([error.status as number, error.errorCode]).toEqual(statusAndCode);
      expect(error.requestID).toMatch(/^req_[0-9a-f]{32}$/);
      expect(error.message).not.toContain("[object");
    },
  );

  test("for want of a scope", async () => {
    await service.json("org", "create", "narrow", "--plan", "unlimited");
    const { key } = await service.json<{ key: string }>(
      ...["key", "create", "--org", "narrow", "--name", "reader", "--scopes", "models:read"],
    );
    const narrow = clientWith(key);
    expect((await narrow.models.list()).data.length).toBe(3);
    const error = (await thrown(narrow.messages.create(asks("")))) as APIError;
    expect(error).toBeInstanceOf(PermissionDeniedError);
    expect(error.errorCode).toBe("missing_scope");
    expect((await narrow.messages.countTokens({ model, messages: says("") })).input_tokens).toBeGreaterThan(0);
  });

  test("that cannot get better is asked once, one that can is asked again", async () => {
    const patient = clientWith(service.key, 2);
    let before = requests();
    expect(await thrown(patient.messages.create(asks("context-length")))).toBeInstanceOf(BadRequestError);
    expect(requests() - before).toBe(1);
    before = requests();
    expect(await thrown(patient.messages.create(asks("status=503 retry-after=1")))).toBeInstanceOf(InternalServerError);
    expect(requests() - before).toBeGreaterThan(2);
  });
});
