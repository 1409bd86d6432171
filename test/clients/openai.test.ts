/**
 * The official openai SDK for TypeScript, unchanged except for base URL, key and model ID, against the service in front
 * of an engine over HTTP: the SDK's features work, and each refusal is an error of the class that the SDK documents.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type OpenAI from "openai";
import {
  APIUserAbortError,
  AuthenticationError,
  BadRequestError,
  InternalServerError,
  NotFoundError,
  PermissionDeniedError,
  RateLimitError,
} from "openai";
import { zodFunction, zodResponseFormat } from "openai/helpers/zod";
import type { ChatCompletionMessageParam } from "openai/resources";
import { z } from "zod";
import { busyness } from "../harness/busyness.ts";
import { model, plainModel, type Service, says, smallModel, startService, words } from "../harness/engine.ts";
import { checkedClient, errorOf, expectRefusal, leaving, leavingBySignal, type Refusal } from "./sdk.ts";

let service: Service;
let client: OpenAI;
beforeAll(async () => {
  service = await startService({ engine: { directives: "", namesModel: false } });
  client = clientWith(service.key);
}, 60_000);
afterAll(async () => {
  await service.stop();
}, 60_000);

const clientWith = (key: string, maxRetries = 0) => checkedClient(service, key, maxRetries);

const requests = () => service.engine.counts.requests;

describe("models", () => {
  test("are listed", async () => {
    const listed: string[] = [];
    for await (const { id, object, owned_by, created } of client.models.list()) {
      expect({ object, owned_by, created }).toEqual({ object: "model", owned_by: "acme", created: 1_790_000_000 });
      listed.push(id);
    }
    expect(listed).toEqual([model, plainModel, smallModel]);
  });

  test("are retrieved by an id with a slash in it", async () => {
    expect(await client.models.retrieve(model)).toMatchObject({ id: model, object: "model", owned_by: "acme" });
  });
});

describe("chat", () => {
  test("answers with text, usage and the request id", async () => {
    const completion = await client.chat.completions.create({ model, messages: says("echo", words(7)) });
    expect(completion.choices[0]?.message.content).toBe(words(7));
    expect(completion.choices[0]?.finish_reason).toBe("stop");
    const { prompt_tokens, completion_tokens, total_tokens } = completion.usage!;
    expect([completion_tokens, total_tokens]).toEqual([7, prompt_tokens + 7]);
    expect(completion.id).toMatch(/^chatcmpl-[0-9a-f]{32}$/);
    expect(completion._request_id).toMatch(/^req_[0-9a-f]{32}$/);
  });

  test("with the raw response beside it", async () => {
    const asking = client.chat.completions.create({ model, messages: says("echo") });
    const { data, response, request_id } = await asking.withResponse();
    expect(response.headers.get("x-service-request-id")).toBe(request_id);
    expect(response.headers.get("x-service-usage-session-percent")).toBe("0");
    expect(data.model).toBe(model);
  });

  test("max_tokens ends with length, and stop before the word", async () => {
    const short = await client.chat.completions.create({ model, messages: says("echo", words(50)), max_tokens: 5 });
    expect(short.choices[0]).toMatchObject({ finish_reason: "length", message: { content: words(5) } });
    const stopped = await client.chat.completions.create({ model, messages: says("echo", "a b END c"), stop: "END" });
    expect(stopped.choices[0]?.message.content?.trim()).toBe("a b");
  });

  test("logprobs come with their alternatives, streamed and not", async () => {
    const ask = { model, messages: says("echo", words(3)), logprobs: true, top_logprobs: 2 };
    const whole = await client.chat.completions.create(ask);
    expect(whole.choices[0]?.logprobs?.content?.map((token) => token.top_logprobs.length)).toEqual([2, 2, 2]);
    const streamed = await client.chat.completions.stream(ask).finalChatCompletion();
    expect(streamed.choices[0]?.logprobs?.content?.map((token) => token.token).join("")).toBe(words(3));
  });

  test("reads an image, by address and by value", async () => {
    const image = (url: string) => ({ type: "image_url" as const, image_url: { url, detail: "low" as const } });
    const images = ["data:image/png;base64,iVBORw0KGgo=", "https://images.test/a.png"].map(image);
    const content = [{ type: "text" as const, text: "what is this?" }, ...images];
    const completion = await client.chat.completions.create({ model, messages: [{ role: "user", content }] });
    expect(completion.choices[0]?.message.content).toContain("I was given 2 image(s).");
  });
});

describe("a stream", () => {
  test("is read chunk by chunk, without usage", async () => {
    const stream = await client.chat.completions.create({ model, messages: says("echo", words(9)), stream: true });
    let text = "";
    const ends: unknown[] = [];
    for await (const chunk of stream) {
      expect(chunk.usage).toBeUndefined();
      text += chunk.choices[0]?.delta.content ?? "";
      if (chunk.choices[0]?.finish_reason) ends.push(chunk.choices[0].finish_reason);
    }
    expect([text, ends]).toEqual([words(9), ["stop"]]);
  });

  test("with include_usage, the last chunk has it, as the whole answer has", async () => {
    const messages = says("echo", words(9));
    const streamed = { stream: true, stream_options: { include_usage: true } } as const;
    const chunks = await Array.fromAsync(await client.chat.completions.create({ model, messages, ...streamed }));
    const whole = await client.chat.completions.create({ model, messages });
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: whole.usage });
    expect(chunks.slice(0, -1).every((chunk) => chunk.usage === null)).toBe(true);
  });

  test("through .stream(): its events, snapshots and final values agree", async () => {
    const stream = client.chat.completions.stream({
      model,
      messages: says("echo", words(9)),
      stream_options: { include_usage: true },
    });
    const told: Record<string, string> = {};
    stream.on("content", (_, snapshot) => void Object.assign(told, { snapshot }));
    stream.on("content.done", ({ content }) => void Object.assign(told, { content }));
    const completion = await stream.finalChatCompletion();
    expect(told).toEqual({ snapshot: words(9), content: words(9) });
    expect(await stream.finalContent()).toBe(words(9));
    expect((await stream.totalUsage()).completion_tokens).toBe(9);
    expect(completion).toMatchObject({ object: "chat.completion", model, choices: [{ finish_reason: "stop" }] });
  });

  test("reasoning comes beside the text", async () => {
    const ask = { model, messages: says("echo", "hello"), reasoning_effort: "low" as const };
    const thought = (message: object | undefined) =>
      (message as { reasoning_content?: string })?.reasoning_content ?? "";
    const whole = await client.chat.completions.create(ask);
    let streamed = "";
    for await (const chunk of await client.chat.completions.create({ ...ask, stream: true }))
      streamed += thought(chunk.choices[0]?.delta);
    expect(streamed.length).toBeGreaterThan(0);
    expect(thought(whole.choices[0]?.message)).toBe(streamed);
    expect(whole.usage?.completion_tokens_details?.reasoning_tokens).toBeGreaterThan(0);
  });
});

describe("tools", () => {
  const city = z.object({ city: z.string() });
  const weather = zodFunction({ name: "weather", parameters: city, description: "Weather of a city" });
  const time = zodFunction({ name: "time", parameters: city, description: "Time in a city" });
  const asksBoth = says("call=weather call=time", "weather and time?");

  for (const streamed of [false, true]) {
    test(`two parallel calls, then their results, ${streamed ? "streamed" : "not streamed"}`, async () => {
      const ask = async (messages: ChatCompletionMessageParam[]) => {
        const body = { model, messages, tools: [weather, time] };
        const completion = streamed
          ? await client.chat.completions.stream(body).finalChatCompletion()
          : await client.chat.completions.parse(body);
        return completion.choices[0]!;
      };
      const first = await ask(asksBoth);
      expect(first.finish_reason).toBe("tool_calls");
      const calls = (first.message.tool_calls ?? []).filter((call) => call.type === "function");
      expect(calls.map((call) => call.function.name)).toEqual(["weather", "time"]);
      for (const call of calls) expect(city.parse(call.function.parsed_arguments)).toBeTruthy();

      const results = calls.map(({ id, function: { name } }) => {
        return { role: "tool" as const, tool_call_id: id, content: `${name} is fine` };
      });
      const second = await ask([...asksBoth, first.message, ...results]);
      expect(second.finish_reason).toBe("stop");
      expect(second.message.content).toContain("The tool weather said: “weather is fine”.");
      expect(second.message.content).toContain("The tool time said: “time is fine”.");
    });

    test(`runTools calls the functions and comes to an answer, ${streamed ? "streamed" : "not streamed"}`, async () => {
      const called: string[] = [];
      const running = (name: string) =>
        zodFunction({
          name,
          parameters: city,
          function: ({ city }) => {
            called.push(name);
            return `${name}, ${typeof city}`;
          },
        });
      const body = { model, messages: asksBoth, tools: [running("weather"), running("time")] };
      const runner = streamed
        ? client.chat.completions.runTools({ ...body, stream: true })
        : client.chat.completions.runTools(body);
      expect(await runner.finalContent()).toContain("The tool time said: “time, string”.");
      expect(called).toEqual(["weather", "time"]);
      const roles = runner.messages.map((message) => message.role);
      expect(roles).toEqual(["user", "assistant", "tool", "tool", "assistant"]);
    });
  }

  test("a forced choice is taken", async () => {
    const completion = await client.chat.completions.create({
      model,
      messages: says(""),
      tools: [weather, time],
      tool_choice: { type: "function", function: { name: "time" } },
      parallel_tool_calls: false,
    });
    expect(completion.choices[0]?.message.tool_calls).toMatchObject([{ type: "function", function: { name: "time" } }]);
  });
});

describe("structured output", () => {
  const Event = z.object({ name: z.string(), participants: z.array(z.string()), day: z.enum(["Friday", "Saturday"]) });
  const ask = {
    model,
    messages: says("", "Alice and Bob go to a fair"),
    response_format: zodResponseFormat(Event, "event"),
  };

  test("by parse", async () => {
    const completion = await client.chat.completions.parse(ask);
    expect(Event.parse(completion.choices[0]?.message.parsed)).toBeTruthy();
    expect(service.engine.requests.at(-1)?.body).toMatchObject({
      response_format: { type: "json_schema", json_schema: { name: "event", strict: true } },
    });
  });

  test("by .stream(), with partial values on the way", async () => {
    const stream = client.chat.completions.stream(ask);
    const partial: unknown[] = [];
    stream.on("content.delta", ({ parsed }) => partial.push(parsed));
    const completion = await stream.finalChatCompletion();
    expect(Event.parse(completion.choices[0]?.message.parsed)).toBeTruthy();
    expect(partial.length).toBeGreaterThan(1);
  });

  test("a refusal is not parsed, and told as one", async () => {
    const completion = await client.chat.completions.parse({ ...ask, messages: says("refusal") });
    expect(completion.choices[0]?.message).toMatchObject({ parsed: null, content: null });
    expect(completion.choices[0]?.message.refusal).toContain("refuse");
  });
});

describe("leaving in the middle stops the engine within a second", () => {
  const long = { model, messages: says("echo tps=50", words(10_000)) };

  test("by break", () =>
    leaving(service, async (plain) => {
      let chunks = 0;
      for await (const _ of await plain.chat.completions.create({ ...long, stream: true })) if (++chunks === 3) break;
    }));

  test("by a signal, an answer that is not streamed", async () => {
    const error = await leavingBySignal(service, (plain, how) => plain.chat.completions.create(long, how));
    expect(error).toBeInstanceOf(APIUserAbortError);
  });
});

describe("errors", () => {
  const chat = (body: object, through = client) =>
    through.chat.completions.create({ model, messages: says("echo"), ...body });
  const unknown = { status: 404, code: "model_not_found", param: "model" };
  const overloaded = { status: 503, code: "overloaded", type: "api_error" };
  const exclusive = { max_tokens: 1, max_completion_tokens: 1 };
  const beyond = { model: plainModel, logprobs: true };
  const badRequest = (what: string, body: object, members: object): Refusal => [
    what,
    () => chat(body),
    BadRequestError,
    { status: 400, ...members },
  ];
  const fails = { messages: says("status=503") };
  const refusals: Refusal[] = [
    badRequest("a field out of its range", { temperature: 9 }, { code: "invalid_value", param: "temperature" }),
    badRequest("what the model cannot do", beyond, { code: "unsupported_feature", param: "logprobs" }),
    badRequest("too long an input", { messages: says("context-length") }, { code: "context_length_exceeded" }),
    badRequest("two names of one cap", exclusive, { code: "mutually_exclusive", param: "max_completion_tokens" }),
    [
      "garbage for a key",
      () => chat({}, clientWith("sk-garbage")),
      AuthenticationError,
      { status: 401, code: "invalid_api_key", type: "authentication_error" },
    ],
    ["an unknown model", () => chat({ model: "acme/nothing" }), NotFoundError, unknown],
    ["an unknown model, streamed", () => chat({ model: "acme/nothing", stream: true }), NotFoundError, unknown],
    ["an unknown model's record", () => client.models.retrieve("acme/nothing"), NotFoundError, { status: 404 }],
    ["an engine that fails", () => chat(fails), InternalServerError, overloaded],
    ["an engine that fails, streamed", () => chat({ ...fails, stream: true }), InternalServerError, overloaded],
  ];
  test.each(refusals)("%s is an error of its class, with its members", (_, provoke, kind, members) =>
    expectRefusal(provoke, kind, members),
  );

  test("403 is a PermissionDeniedError", async () => {
    await service.json("org", "create", "narrow", "--plan", "unlimited");
    const scopes = ["--name", "reader", "--scopes", "models:read"];
    const { key } = await service.json<{ key: string }>("key", "create", "--org", "narrow", ...scopes);
    const error = await errorOf(chat({}, clientWith(key)));
    expect(error).toBeInstanceOf(PermissionDeniedError);
    expect(error).toMatchObject({ status: 403, code: "missing_scope", type: "permission_error" });
  });

  test("429 is a RateLimitError with the time to wait", async () => {
    const error = await errorOf(chat({ messages: says("status=429 retry-after=7") }));
    expect(error).toBeInstanceOf(RateLimitError);
    expect(error).toMatchObject({ status: 429, code: "capacity_exceeded", type: "rate_limit_error" });
    expect(error.headers?.get("retry-after")).toBe("7");
  });

  for (const fault of ["tps=100 cut-after=3", "error-after=3", "malformed-after=3"]) {
    test(`in the middle of a stream (${fault}) it is thrown after what came`, async () => {
      const body = { model, messages: says(`echo ${fault}`, words(20)) };
      let text = "";
      const read = async () => {
        for await (const chunk of await client.chat.completions.create({ ...body, stream: true })) {
          expect(chunk.choices[0]?.finish_reason).toBeNull();
          text += chunk.choices[0]?.delta.content ?? "";
        }
      };
      const error = await errorOf(read());
      expect(error).toMatchObject({ status: undefined, code: "upstream_unavailable", type: "api_error" });
      expect(text).toBe(words(3));
      const helper = client.chat.completions.stream(body).finalChatCompletion();
      expect(await errorOf(helper)).toMatchObject({ code: "upstream_unavailable" });
    });
  }

  test("what can succeed is tried again, as often as the SDK was told, when it was told", async () => {
    const before = requests();
    const started = performance.now();
    const error = await errorOf(chat({ messages: says("status=503 retry-after=1") }, clientWith(service.key, 1)));
    expect(error.status).toBe(503);
    // The SDK sends the request twice, and for each of these the service sends it twice to the model's only engine.
    expect(requests() - before).toBe(4);
    expect(performance.now() - started).toBeGreaterThan(900);
  });

  test("what cannot succeed is not tried again", async () => {
    const before = requests();
    const patient = clientWith(service.key, 2);
    const started = performance.now();
    await errorOf(chat({ temperature: 9 }, patient));
    await errorOf(chat({ messages: says("status=400") }, patient));
    await errorOf(chat({}, clientWith("sk-garbage", 2)));
    await errorOf(chat({ model: "acme/nothing" }, patient));
    expect(requests() - before).toBe(1);
    expect(performance.now() - started).toBeLessThan(3_000 * busyness());
  });
});
