/**
 * The official openai SDK for TypeScript with the Responses protocol, unchanged except for base URL, key and model ID,
 * against the service in front of an engine over HTTP: the SDK's features work, and each refusal is an error of the
 * class that the SDK documents.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import OpenAI, {
  APIUserAbortError,
  AuthenticationError,
  BadRequestError,
  InternalServerError,
  NotFoundError,
  RateLimitError,
} from "openai";
import { ResponsesToolRunner, runnerFunction } from "openai/helpers/responses-tool-runner";
import { zodResponsesFunction, zodTextFormat } from "openai/helpers/zod";
import type {
  Response as ModelResponse,
  ResponseCreateParamsNonStreaming,
  ResponseInputItem,
  ResponseOutputItem,
  ResponseStreamEvent,
} from "openai/resources/responses/responses";
import { ResponsesWS } from "openai/resources/responses/ws";
import { z } from "zod";
import { model, plainModel, type Service, startService, words } from "../harness/engine.ts";
import { nanosOf } from "../harness/money.ts";
import { endedReceipt } from "../harness/receipts.ts";
import { usedUpKey, weekly } from "./limited-keys.ts";
import { checkedFetch, errorOf, expectRefusal, leaving, leavingBySignal, type Refusal, thrown } from "./sdk.ts";

let service: Service;
/** The SDK's client. Every response to it is checked against the contract. */
let client: OpenAI;
beforeAll(async () => {
  service = await startService({ engine: { directives: "", namesModel: false }, plans: weekly });
  client = clientWith(service.key);
}, 60_000);
afterAll(async () => {
  await service.stop();
}, 60_000);

function clientWith(key: string, maxRetries = 0, sees: (url: string) => void = () => {}): OpenAI {
  const fetch = checkedFetch(service);
  const seen: typeof fetch = (url, init) => {
    sees(String(url));
    return fetch(url, init);
  };
  return new OpenAI({ baseURL: `${service.url}/v1`, apiKey: key, maxRetries, fetch: seen });
}

const cue = (directives: string, text = "hello there") => `[simulator: ${directives}] ${text}`;
const engineMessages = () =>
  (service.engine.requests.at(-1)!.body as { messages: { role: string; content: unknown }[] }).messages;
/**
 * The text of a response. The SDK's `output_text` is not used, because the SDK does not set it on a stream's events.
 */
const textOf = ({ output }: Pick<ModelResponse, "output">) =>
  output
    .flatMap((item) => (item.type === "message" ? item.content : []))
    .map((part) => (part.type === "output_text" ? part.text : ""))
    .join("");
const ask = (body: Partial<ResponseCreateParamsNonStreaming>) => client.responses.create({ model, ...body });

/** The ways to send one request: without streaming, and with the SDK's two ways of streaming. */
const ways: [string, (body: ResponseCreateParamsNonStreaming) => Promise<ModelResponse>][] = [
  ["create", (body) => client.responses.create(body)],
  ["stream()", ({ stream: _, ...body }) => client.responses.stream(body).finalResponse()],
  [
    "create with stream",
    async (body) => {
      let last: ResponseStreamEvent | undefined;
      for await (const event of await client.responses.create({ ...body, stream: true })) last = event;
      if (last?.type !== "response.completed") throw new Error(`it ended with ${last?.type}`);
      return last.response;
    },
  ],
];

describe("a response", () => {
  test("has its text, usage and request id", async () => {
    const response = await ask({ input: cue("echo", words(7)), instructions: "Be brief." });
    expect(response.output_text).toBe(words(7));
    expect(response).toMatchObject({ object: "response", status: "completed", model, instructions: "Be brief." });
    expect(response.usage).toMatchObject({ output_tokens: 7, output_tokens_details: { reasoning_tokens: 0 } });
    expect(response.usage!.total_tokens).toBe(response.usage!.input_tokens + 7);
    expect(response._request_id).toMatch(/^req_[0-9a-f]{32}$/);
    expect(engineMessages()[0]).toEqual({ role: "system", content: "Be brief." });
  });

  test("with the raw response beside it", async () => {
    const { data, response, request_id } = await ask({ input: cue("echo") }).withResponse();
    expect(response.headers.get("x-service-request-id")).toBe(request_id);
    expect(response.headers.get("x-service-usage-session-percent")).toBe("0");
    expect(data.id).toMatch(/^resp_[0-9a-f]{32}$/);
  });

  test("that its cap cut is incomplete, and says why", async () => {
    for (const [, through] of ways.slice(0, 2)) {
      const response = await through({ model, input: cue("echo", words(50)), max_output_tokens: 5 });
      expect(response).toMatchObject({ status: "incomplete", incomplete_details: { reason: "max_output_tokens" } });
      expect(response.output_text).toBe(words(5));
    }
  });

  test("sees images, by address and by value", async () => {
    const image = (image_url: string) => ({ type: "input_image" as const, image_url, detail: "low" as const });
    const content = [
      { type: "input_text" as const, text: "what is this?" },
      image("data:image/png;base64,iVBORw0KGgo="),
      image("https://images.test/a.png"),
    ];
    const response = await ask({ input: [{ role: "user", content }] });
    expect(response.output_text).toContain("I was given 2 image(s).");
  });

  test("has log probabilities where they are asked for", async () => {
    const logged = { include: ["message.output_text.logprobs" as const], top_logprobs: 2 };
    const response = await ask({ input: cue("echo", words(3)), ...logged });
    const [item] = response.output;
    const part = item?.type === "message" ? item.content[0] : undefined;
    const logprobs = part?.type === "output_text" ? (part.logprobs ?? []) : [];
    expect(logprobs.map(({ token }) => token).join("")).toBe(words(3));
    expect(logprobs.map(({ top_logprobs }) => top_logprobs.length)).toEqual([2, 2, 2]);
  });
});

describe("a conversation that is compacted", () => {
  const talk: ResponseInputItem[] = [
    { role: "user", content: cue("echo", "The code is X-17.") },
    { role: "assistant", content: "Noted." },
  ];

  test("by responses.compact, goes on from its output", async () => {
    const compacted = await client.responses.compact({ model, input: talk });
    expect(compacted.object).toBe("response.compaction");
    expect(compacted.output.map(({ type }) => type)).toEqual(["message", "compaction"]);
    expect(compacted.usage.total_tokens).toBe(compacted.usage.input_tokens + compacted.usage.output_tokens);
    const input = [
      ...(compacted.output as ResponseInputItem[]),
      { role: "user" as const, content: cue("echo", "And?") },
    ];
    expect((await ask({ input })).output_text).toBe("And?");
    expect(JSON.stringify(engineMessages()[1])).toContain("This summary stands in place of the conversation");
  });

  test.each(ways)("by a trigger through %s, is one item, which goes on", async (_, through) => {
    const { output, status } = await through({ model, input: [...talk, { type: "compaction_trigger" }] });
    expect([status, output.map(({ type }) => type)]).toEqual(["completed", ["compaction"]]);
    const input = [...(output as ResponseInputItem[]), { role: "user" as const, content: cue("echo", "And?") }];
    expect((await ask({ input })).output_text).toBe("And?");
  });
});

test("responses.inputTokens.count says how long an input is", async () => {
  const short = await client.responses.inputTokens.count({ model, input: "Hello" });
  expect(short.object).toBe("response.input_tokens");
  const long = await client.responses.inputTokens.count({ model, input: words(2_000), instructions: "Be brief." });
  expect(long.input_tokens).toBeGreaterThan(short.input_tokens + 500);
  const first = await ask({ input: cue("echo", words(100)) });
  const continued = await client.responses.inputTokens.count({ model, previous_response_id: first.id, input: "Hello" });
  expect(continued.input_tokens).toBeGreaterThan(short.input_tokens + 20);
});

describe("a stream", () => {
  test("is read event by event, and ends with the whole response", async () => {
    let text = "";
    const events: ResponseStreamEvent[] = [];
    for await (const event of await client.responses.create({ model, input: cue("echo", words(9)), stream: true })) {
      events.push(event);
      if (event.type === "response.output_text.delta") text += event.delta;
    }
    expect(text).toBe(words(9));
    expect(events.map(({ sequence_number }) => sequence_number)).toEqual([...events.keys()]);
    expect(events[0]?.type).toBe("response.created");
    expect(events.at(-1)).toMatchObject({ type: "response.completed", response: { usage: { output_tokens: 9 } } });
  });

  test("through .stream(): its snapshots, its events and its final response agree", async () => {
    const stream = client.responses.stream({ model, input: cue("echo", words(9)) });
    let snapshot = "";
    const types: string[] = [];
    stream.on("response.output_text.delta", (event) => {
      snapshot = event.snapshot;
    });
    stream.on("event", ({ type }) => types.push(type));
    const response = await stream.finalResponse();
    expect([snapshot, response.output_text]).toEqual([words(9), words(9)]);
    expect(types.filter((type) => type === "response.completed")).toHaveLength(1);
    const stored = await client.responses.retrieve(response.id);
    expect(stored.output.map(({ id }) => id)).toEqual(response.output.map(({ id }) => id));
    expect(stored.output_text).toBe(words(9));
  });

  test("has the reasoning before the text, and the same as without a stream", async () => {
    const body = { model, input: cue("echo", "hello"), reasoning: { effort: "low" as const } };
    const thoughts = await Promise.all(ways.map(([, through]) => through(body).then(thoughtOf)));
    for (const { told, tokens } of thoughts) {
      expect(told).toEqual({ types: ["reasoning", "message"], content: [expect.any(String)], summary: [] });
      expect(tokens).toBeGreaterThan(0);
    }
    let streamed = "";
    for await (const event of await client.responses.create({ ...body, stream: true }))
      if (event.type === "response.reasoning_text.delta") streamed += event.delta;
    expect(streamed.length).toBeGreaterThan(0);
    for (const { told } of thoughts) expect(told.content).toEqual([streamed]);
  });

  test("has the reasoning as a summary where that is asked for, the same by each way", async () => {
    const body = { model, input: cue("echo", "hello"), reasoning: { effort: "low", summary: "auto" } as const };
    let streamed = "";
    const stream = client.responses.stream(body);
    stream.on("response.reasoning_summary_text.delta", ({ delta }) => {
      streamed += delta;
    });
    for (const response of [
      await stream.finalResponse(),
      ...(await Promise.all(ways.map(([, through]) => through(body)))),
    ]) {
      expect(response.reasoning).toMatchObject(body.reasoning);
      expect(thoughtOf(response).told).toEqual({ types: ["reasoning", "message"], content: [], summary: [streamed] });
    }
    expect(streamed.length).toBeGreaterThan(0);
  });

  function thoughtOf({ output, usage }: ModelResponse) {
    const [item] = output;
    if (item?.type !== "reasoning") throw new Error(`it is a ${item?.type}`);
    const types = output.map(({ type }) => type);
    const told = { types, content: (item.content ?? []).map(textOfPart), summary: item.summary.map(textOfPart) };
    return { told, tokens: usage?.output_tokens_details.reasoning_tokens };
  }
  const textOfPart = ({ text }: { text: string }) => text;
});

describe("tools", () => {
  const city = z.object({ city: z.string() });
  const weather = zodResponsesFunction({ name: "weather", parameters: city, description: "Weather of a city" });
  const time = zodResponsesFunction({ name: "time", parameters: city, description: "Time in a city" });
  const tools = [weather, time];
  const says = (content: string): ResponseInputItem => ({ role: "user", content });
  const callsIn = (output: ResponseOutputItem[]) => output.filter((item) => item.type === "function_call");
  const results = (output: ResponseOutputItem[]): ResponseInputItem[] =>
    callsIn(output).map(({ call_id, name }) => ({ type: "function_call_output", call_id, output: `${name} is fine` }));

  /** Returns the fields of the next turn's request, given the responses and the inputs of the turns before it. */
  type Next = (before: ModelResponse[], inputs: ResponseInputItem[][]) => Partial<ResponseCreateParamsNonStreaming>;
  const replays: Record<string, Next> = {
    "all items sent again": (before, inputs) => ({
      input: inputs.flatMap((input, at) => [...input, ...((before[at]?.output ?? []) as ResponseInputItem[])]),
      store: false,
    }),
    previous_response_id: (before, inputs) => ({
      input: inputs.at(-1)!,
      previous_response_id: before.at(-1)?.id ?? null,
    }),
    "references to items": (before, inputs) => ({
      input: inputs.flatMap((input, at) => [
        ...input,
        ...(before[at]?.output ?? []).map(({ id }) => ({ type: "item_reference" as const, id: id! })),
      ]),
    }),
  };

  for (const [how, through] of ways) {
    test(`two calls at once, their results, and a third call, by ${how}: an engine hears the same however they are replayed`, async () => {
      const heard: unknown[] = [];
      for (const next of Object.values(replays)) {
        const before: ModelResponse[] = [];
        const inputs: ResponseInputItem[][] = [];
        const turn = async (input: ResponseInputItem[]) => {
          inputs.push(input);
          const body = { model, tools, ...next(before, inputs), reasoning: { effort: "low" as const } };
          before.push(await through(body));
          return before.at(-1)!;
        };
        const first = await turn([says(cue("call=weather call=time", "weather and time?"))]);
        expect(callsIn(first.output).map(({ name }) => name)).toEqual(["weather", "time"]);
        const second = await turn(results(first.output));
        expect(textOf(second)).toContain("The tool weather said: “weather is fine”.");
        expect(textOf(second)).toContain("The tool time said: “time is fine”.");
        const third = await turn([says(cue("call=time", "and later?"))]);
        expect(callsIn(third.output).map(({ name }) => name)).toEqual(["time"]);
        const fourth = await turn(results(third.output));
        expect(textOf(fourth)).toContain("The tool time said: “time is fine”.");
        heard.push(engineMessages());
      }
      expect(heard[0]).toHaveLength(8);
      expect(heard[1]).toEqual(heard[0]);
      expect(heard[2]).toEqual(heard[0]);
    });
  }

  test("by parse, the arguments are what the schema says", async () => {
    const response = await client.responses.parse({ model, tools, input: cue("call=weather", "weather?") });
    const [call] = callsIn(response.output as ResponseOutputItem[]) as { parsed_arguments?: unknown }[];
    expect(city.parse(call?.parsed_arguments)).toBeTruthy();
  });

  for (const stream of [false, true]) {
    test(`the SDK's own loop calls the functions and comes to an answer, ${stream ? "streamed" : "not streamed"}`, async () => {
      const called: string[] = [];
      const running = (name: string) =>
        runnerFunction(
          zodResponsesFunction({
            name,
            parameters: city,
            function: ({ city }) => {
              called.push(name);
              return `${name}, ${typeof city}`;
            },
          }),
        );
      const runner = new ResponsesToolRunner({ functions: [running("weather"), running("time")] });
      const input = [says(cue("call=weather call=time", "weather and time?"))];
      const response = await runner.run(client, { model, input }, { stream });
      expect(called).toEqual(["weather", "time"]);
      expect(response.output_text).toContain("The tool time said: “time, string”.");
    });
  }

  test("a forced choice is taken, and allowed_tools is a wall", async () => {
    const forced = await ask({ input: "hello", tools, tool_choice: { type: "function", name: "time" } });
    expect(callsIn(forced.output).map(({ name }) => name)).toEqual(["time"]);
    const allowed = { type: "allowed_tools", mode: "required", tools: [{ type: "function", name: "time" }] } as const;
    const walled = await ask({ input: "hello", tools, tool_choice: { ...allowed, tools: [...allowed.tools] } });
    expect(callsIn(walled.output).map(({ name }) => name)).toEqual(["time"]);
  });

  for (const [how, through] of ways) {
    test(`a custom tool is called with plain text, and takes its result, by ${how}`, async () => {
      const definition = "start: /.+/";
      const patch = {
        type: "custom" as const,
        name: "patch",
        description: "Takes a patch.",
        format: { type: "grammar" as const, syntax: "lark" as const, definition },
      };
      const given = btoa(JSON.stringify({ input: '- "a"\n+ b' }));
      const first = await through({ model, tools: [patch], input: cue(`call=patch:${given}`) });
      const [call] = first.output;
      if (call?.type !== "custom_tool_call") throw new Error(`it is a ${call?.type}`);
      expect(call).toMatchObject({ name: "patch", input: '- "a"\n+ b' });
      const second = await through({
        model,
        tools: [patch],
        previous_response_id: first.id,
        input: [{ type: "custom_tool_call_output", call_id: call.call_id, output: "it is applied" }],
      });
      expect(textOf(second)).toContain("The tool patch said: “it is applied”.");
    });
  }
});

describe("structured output", () => {
  const Event = z.object({ name: z.string(), participants: z.array(z.string()), day: z.enum(["Friday", "Saturday"]) });
  const body = { model, input: "Alice and Bob go to a fair", text: { format: zodTextFormat(Event, "event") } };

  test("by parse", async () => {
    const response = await client.responses.parse(body);
    expect(Event.parse(response.output_parsed)).toBeTruthy();
    expect(service.engine.requests.at(-1)?.body).toMatchObject({
      response_format: { type: "json_schema", json_schema: { name: "event", strict: true } },
    });
  });

  test("by .stream()", async () => {
    const response = await client.responses.stream(body).finalResponse();
    expect(Event.parse(response.output_parsed)).toBeTruthy();
  });

  test("by a JSON Schema of one's own", async () => {
    const schema = {
      type: "object",
      properties: { n: { type: "integer" } },
      required: ["n"],
      additionalProperties: false,
    };
    const format = { type: "json_schema" as const, name: "number", strict: true, schema };
    const response = await ask({ input: "a number", text: { format } });
    expect(Number.isInteger((JSON.parse(response.output_text) as { n: number }).n)).toBe(true);
  });

  test("a refusal is not parsed, and told as one", async () => {
    const response = await client.responses.parse({ ...body, input: cue("refusal") });
    expect(response.output_parsed).toBeNull();
    const [item] = response.output;
    expect(item?.type === "message" ? item.content[0] : undefined).toMatchObject({
      type: "refusal",
      refusal: expect.stringContaining("refuse"),
    });
  });
});

describe("what is kept", () => {
  test("is retrieved as it was answered, its input page by page, and deleted", async () => {
    const texts = ["one", "two", "three", "four", "five"];
    const input = texts.map((content) => ({ role: "user" as const, content }));
    const response = await ask({ input });
    const { _request_id: _, ...stored } = await client.responses.retrieve(response.id);
    const { _request_id: __, ...answered } = response;
    expect(stored).toEqual(answered);

    const listed: unknown[] = [];
    const pages: string[] = [];
    const watching = clientWith(service.key, 0, (url) => pages.push(url));
    for await (const item of watching.responses.inputItems.list(response.id, { limit: 2, order: "asc" }))
      listed.push(item.type === "message" ? item.content : item);
    expect(listed).toEqual(texts.map((text) => [{ type: "input_text", text }]));
    expect(pages).toHaveLength(3);
    const newest = await client.responses.inputItems.list(response.id, { limit: 1 });
    expect(newest.data).toMatchObject([{ content: [{ text: "five" }] }]);

    await client.responses.delete(response.id);
    expect(await thrown(client.responses.retrieve(response.id))).toBeInstanceOf(NotFoundError);
    expect(await thrown(client.responses.delete(response.id))).toBeInstanceOf(NotFoundError);
  });
});

describe("leaving in the middle stops the engine within a second", () => {
  const long = { model, input: cue("echo tps=50", words(10_000)) };

  test("by break, and is charged what was produced", async () => {
    const id = await leaving(service, async (plain) => {
      const { data, request_id } = await plain.responses.create({ ...long, stream: true }).withResponse();
      let deltas = 0;
      for await (const { type } of data) if (type === "response.output_text.delta" && ++deltas === 3) break;
      return request_id;
    });
    const { outcome, usage, cost } = await endedReceipt(service, id!, { deadline_ms: 5_000 });
    expect(outcome).toBe("cancelled");
    expect(usage?.output_tokens).toBeGreaterThan(0);
    expect(usage?.output_tokens).toBeLessThan(1000);
    expect(nanosOf(cost.charged)).toBeGreaterThan(0);
  });

  test("by a signal, an answer that is not streamed", async () => {
    const error = await leavingBySignal(service, (plain, how) => plain.responses.create(long, how));
    expect(error).toBeInstanceOf(APIUserAbortError);
  });
});

describe("errors", () => {
  const respond = (body: object, through = client): Promise<unknown> =>
    through.responses.create({ model, input: cue("echo"), ...body });
  const refused = (body: object, code: string, param: string): Refusal => [
    `${param} (${code})`,
    () => respond(body),
    BadRequestError,
    { code, param },
  ];
  const unknown = { status: 404, code: "model_not_found", param: "model" };
  const overloaded = { status: 503, code: "overloaded" };
  const fails = { input: cue("status=503") };
  const refusals: Refusal[] = [
    refused({ temperature: 9 }, "invalid_value", "temperature"),
    refused({ input: [{ role: "nobody", content: "x" }] }, "invalid_value", "input[0].role"),
    refused({ previous_response_id: "resp_unknown" }, "previous_response_not_found", "previous_response_id"),
    refused({ tools: [{ type: "web_search" }] }, "unsupported_feature", "tools[0].type"),
    refused({ model: plainModel, text: { format: { type: "json_object" } } }, "unsupported_feature", "text.format"),
    refused({ input: cue("context-length") }, "context_length_exceeded", "input"),
    [
      "garbage for a key",
      () => respond({}, clientWith("sk-garbage")),
      AuthenticationError,
      { status: 401, code: "invalid_api_key", type: "authentication_error" },
    ],
    ["an unknown model", () => respond({ model: "acme/nothing" }), NotFoundError, unknown],
    ["an unknown model, streamed", () => respond({ model: "acme/nothing", stream: true }), NotFoundError, unknown],
    [
      "an unknown response",
      () => client.responses.retrieve("resp_unknown"),
      NotFoundError,
      { status: 404, param: "id" },
    ],
    ["an engine that fails", () => respond(fails), InternalServerError, overloaded],
    ["an engine that fails, streamed", () => respond({ ...fails, stream: true }), InternalServerError, overloaded],
  ];
  test.each(refusals)("%s is an error of its class, with its members", (_, provoke, kind, members) =>
    expectRefusal(provoke, kind, members),
  );

  test("429 for a limit that is reached is a RateLimitError, asked once, that says until when", async () => {
    const key = await usedUpKey(service);
    for (const stream of [false, true]) {
      let requests = 0;
      const patient = clientWith(key, 2, () => {
        requests += 1;
      });
      const error = await errorOf(respond({ stream }, patient));
      expect(error).toBeInstanceOf(RateLimitError);
      expect(error).toMatchObject({ code: "usage_limit_reached", type: "usage_limit_reached" });
      const { resets_at } = error.error as { resets_at: number };
      expect(resets_at).toBeGreaterThan(Date.now() / 1000);
      expect(requests).toBe(1);
    }
  });

  for (const fault of ["tps=100 cut-after=3", "error-after=3", "malformed-after=3"]) {
    test(`in the middle of a stream (${fault}) it is told after what came, and nothing is kept`, async () => {
      const body = { model, input: cue(`echo ${fault}`, words(20)) };
      let text = "";
      const types: string[] = [];
      let failed: ModelResponse | undefined;
      for await (const event of await client.responses.create({ ...body, stream: true })) {
        types.push(event.type);
        if (event.type === "response.output_text.delta") text += event.delta;
        if (event.type === "response.failed") failed = event.response;
      }
      expect(text).toBe(words(3));
      expect(types.at(-1)).toBe("response.failed");
      expect(failed).toMatchObject({ status: "failed", error: { code: "server_error" } });
      expect(await client.responses.stream(body).finalResponse()).toMatchObject({ status: "failed" });
      expect(await thrown(client.responses.retrieve(failed!.id))).toBeInstanceOf(NotFoundError);
    });
  }
});

describe("a WebSocket", () => {
  type Message = Extract<Awaited<ReturnType<ReturnType<ResponsesWS["stream"]>["next"]>>["value"], { type: "message" }>;
  const lasts = ["response.completed", "response.failed", "response.incomplete", "error"];

  /** Sends an event, and returns the last event of the response to it. */
  async function answered(ws: ResponsesWS, event: Parameters<ResponsesWS["send"]>[0]): Promise<Message["message"]> {
    const events = ws.stream();
    ws.send(event);
    for await (const heard of events) {
      if (heard.type === "error") return { type: "error", ...(heard.error.error as object) } as Message["message"];
      if (heard.type === "message" && lasts.includes(heard.message.type)) return heard.message;
    }
    throw new Error("the WebSocket closed");
  }

  test("answers turn after turn, with nothing stored, and says what is wrong", async () => {
    const ws = new ResponsesWS(client);
    ws.on("error", () => {});
    const create = { type: "response.create", model, store: false } as const;
    const first = await answered(ws, { ...create, input: cue("echo", "one") });
    if (first.type !== "response.completed") throw new Error(`the first turn ended with ${first.type}`);
    expect(textOf(first.response)).toContain("one");
    const more = { input: cue("echo", "two"), previous_response_id: first.response.id };
    const second = await answered(ws, { ...create, ...more });
    expect(second.type).toBe("response.completed");
    expect(engineMessages().map(({ role }) => role)).toEqual(["user", "assistant", "user"]);
    expect(await answered(ws, { ...create, input: "x", previous_response_id: "resp_none" })).toMatchObject({
      ...{ type: "error", status: 400, code: "previous_response_not_found", param: "previous_response_id" },
    });
    const steered = { type: "response.steer", previous_response_id: first.response.id, input: "left" } as const;
    const failing = new Promise((resolve) => ws.on("response.steer.failed", resolve));
    ws.send(steered);
    expect(await failing).toMatchObject({ error: { code: "steering_not_supported" } });
    ws.close();
  });
});
