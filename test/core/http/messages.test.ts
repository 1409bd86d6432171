/** POST /v1/messages over real sockets: what its clients send, and what they need back. */
import { afterAll, describe, expect, test } from "bun:test";
import type { Message } from "../../../src/core/protocol/anthropic-messages/contract.ts";
import { model, plainModel, type Service, says, smallModel, startService, words } from "../../harness/engine.ts";
import { eventsOf, gathered } from "../../harness/messages.ts";
import { nanosOf } from "../../harness/money.ts";
import { newMember } from "../../harness/organizations.ts";
import { endedReceipt, requestIdOf } from "../../harness/receipts.ts";
import { until } from "../../harness/until.ts";

const path = "/v1/messages";
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const weather = {
  name: "get_weather",
  description: "The weather at a place.",
  input_schema: { type: "object", properties: { place: { type: "string" } }, required: ["place"] },
};

const service = await startService({ engine: { directives: "", namesModel: false } });
afterAll(() => service.stop(), 60_000);

const asks = (directives: string, text = "hello there", more: object = {}) => ({
  model,
  max_tokens: 1024,
  messages: says(directives, text),
  ...more,
});
const post = (body: unknown, init: Parameters<Service["post"]>[2] = {}) => service.post(path, body, init);
const answered = async (body: unknown) => (await (await post(body)).json()) as Message;

const streamed = async (body: object) => eventsOf(await post({ ...body, stream: true }));

interface Refusal {
  type: string;
  error: { type: string; message: string; details: { error_code: string; [key: string]: unknown } };
  request_id: string;
}
async function refusalOf(response: Response) {
  const { error } = (await response.json()) as Refusal;
  return { status: response.status, type: error.type, code: error.details.error_code, message: error.message };
}

describe("a message", () => {
  test("is answered with its text, its usage, and an id of its own", async () => {
    const response = await post(asks("echo", words(7), { system: "Be brief." }));
    expect(response.headers.get("x-service-usage-session-percent")).toBe("0");
    expect(response.headers.get("request-id")).toMatch(/^req_[0-9a-f]{32}$/);
    const message = (await response.json()) as Message;
    expect(message).toMatchObject({
      type: "message",
      role: "assistant",
      model,
      content: [{ type: "text", text: words(7) }],
      stop_reason: "end_turn",
      stop_sequence: null,
      usage: { output_tokens: 7, cache_read_input_tokens: 0 },
    });
    expect(message.id).toMatch(/^msg_[0-9a-f]{32}$/);
    expect(service.engine.requests.at(-1)?.body).toMatchObject({
      messages: [{ role: "system", content: "Be brief." }, { role: "user" }],
    });
  });

  test("says the same streamed and not, and begins with an input count", async () => {
    const ask = asks("reasoning=12 tokens=40 cached=4");
    const whole = await answered(ask);
    const events = await streamed(ask);
    const { content, stop_reason, stop_sequence, usage } = whole;
    expect<object>(gathered(events)).toEqual({ content, stop_reason, stop_sequence, usage });
    const [start] = events;
    if (start?.type !== "message_start") throw new Error("no message_start");
    expect(start.message.usage.input_tokens).toBeGreaterThan(0);
  });

  test("begins with about what is booked in the end, of a model's first greeting too", async () => {
    const greeting = { model: plainModel, temperature: 1, max_tokens: 256, messages: says("", "hello") };
    const [start] = await streamed(greeting);
    if (start?.type !== "message_start") throw new Error("no message_start");
    const { usage: booked } = await answered(greeting);
    expect(start.message.usage.input_tokens / booked.input_tokens).toBeWithin(0.5, 1.75);
  });

  test("begins with what is booked where the client leaves before an engine reports", async () => {
    const leave = new AbortController();
    const slow = { ...asks("tps=5 tokens=100"), stream: true };
    const response = await post(slow, { signal: leave.signal });
    const reader = response.body!.getReader();
    const { value } = await reader.read();
    leave.abort();
    await reader.cancel().catch(() => {});
    const input_tokens = Number(/"input_tokens":(\d+)/.exec(new TextDecoder().decode(value))?.[1]);
    const receipt = await endedReceipt(service, requestIdOf(response));
    expect(receipt).toMatchObject({ outcome: "cancelled", usage: { input_tokens } });
  });

  test("takes parts, images, documents and instructions in the middle", async () => {
    const message = await answered({
      model,
      max_tokens: 512,
      system: [{ type: "text", text: "You see.", cache_control: { type: "ephemeral" } }],
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "What is this?" },
            { type: "image", source: { type: "base64", media_type: "image/png", data: pixel } },
            { type: "document", source: { type: "text", media_type: "text/plain", data: "A list." }, title: "List" },
          ],
        },
        { role: "system", content: "Answer in Latin." },
      ],
    });
    const [text] = message.content;
    expect(text?.type === "text" && text.text).toContain("I was given 1 image(s)");
    const sent = JSON.stringify(service.engine.requests.at(-1)?.body);
    for (const said of ["Document: List", "A list.", "Answer in Latin.", `data:image/png;base64,${pixel}`])
      expect(sent).toContain(said);
  });

  test("the cap ends it with max_tokens, and is lowered to what the model can", async () => {
    const short = await answered(asks("echo", words(50), { max_tokens: 5 }));
    expect(short).toMatchObject({ stop_reason: "max_tokens", content: [{ text: words(5) }] });
    const capped = await answered({ ...asks("tokens=300"), model: smallModel, max_tokens: 32_000 });
    expect(capped).toMatchObject({ stop_reason: "max_tokens", usage: { output_tokens: 256 } });
  });

  test("structured output comes by output_config, and a hint to a model that does not reason is none", async () => {
    const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
    const message = await answered(asks("", "a city", { output_config: { format: { type: "json_schema", schema } } }));
    const [text] = message.content;
    expect(Object.keys(JSON.parse(text?.type === "text" ? text.text : ""))).toEqual(["city"]);
    const hinted = { thinking: { type: "adaptive", display: "omitted" }, output_config: { effort: "high" } };
    expect((await post({ ...asks("echo"), model: plainModel, ...hinted })).status).toBe(200);
  });
});

describe("tools", () => {
  const twoCalls = { tools: [weather, { ...weather, name: "get_time" }] };

  test.each(["", "quirk=interleaved-tools", "quirk=same-ids", "quirk=index-missing", "quirk=two-calls-one-chunk"])(
    "two parallel calls, streamed and not, and their results (%s)",
    async (quirk) => {
      const ask = asks(`calls=2 ${quirk}`, "weather and time", twoCalls);
      const whole = await answered(ask);
      expect(whole.stop_reason).toBe("tool_use");
      const calls = whole.content.flatMap((block) => (block.type === "tool_use" ? [block] : []));
      expect(calls.map((call) => [call.name, Object.keys(call.input)])).toEqual([
        ["get_weather", ["place"]],
        ["get_time", ["place"]],
      ]);
      expect(new Set(calls.map((call) => call.id)).size).toBe(2);
      const { content, stop_reason } = gathered(await streamed(ask)) as unknown as Message;
      expect(stop_reason).toBe("tool_use");
      expect(content.map((block) => block.type === "tool_use" && block.input)).toEqual(calls.map((call) => call.input));

      const results = calls.map((call, at) => ({
        type: "tool_result",
        tool_use_id: call.id,
        content: [{ type: "text", text: `result ${at}` }],
        is_error: at === 1,
      }));
      const messages = [
        ...ask.messages,
        { role: "assistant", content: whole.content },
        { role: "user", content: [...results, { type: "text", text: "and now?" }] },
      ];
      const next = await answered({ ...ask, messages });
      expect(next.stop_reason).toBe("end_turn");
      const sent = service.engine.requests.at(-1)?.body as { messages: { role: string; content: unknown }[] };
      expect(sent.messages.map((message) => message.role)).toEqual(["user", "assistant", "tool", "tool", "user"]);
      expect(sent.messages[3]?.content).toBe("Error: result 1");
    },
  );

  test("one at a time where the caller says so", async () => {
    const choice = { type: "any", disable_parallel_tool_use: true };
    const message = await answered(asks("calls=2", "weather", { ...twoCalls, tool_choice: choice }));
    expect(message.content.filter((block) => block.type === "tool_use")).toHaveLength(1);
  });

  test("hosted tools that agents list do not reach the model", async () => {
    const placeholder = { name: "DeferredToolPlaceholder", input_schema: { type: "object" }, defer_loading: true };
    const hosted = { type: "web_search_20250305", name: "web_search", max_uses: 8 };
    await answered(asks("echo", "hi", { tools: [weather, placeholder, hosted] }));
    const sent = service.engine.requests.at(-1)?.body as { tools: { function: { name: string } }[] };
    expect(sent.tools.map((tool) => tool.function.name)).toEqual(["get_weather"]);
  });
});

describe("thinking", () => {
  test("comes first, signed, and is taken back with any signature", async () => {
    const ask = asks("reasoning=9 echo", "a b c", {
      thinking: { type: "enabled", budget_tokens: 1024 },
      max_tokens: 2048,
    });
    const message = await answered(ask);
    expect(message.content.map((block) => block.type)).toEqual(["thinking", "text"]);
    expect(message.usage.output_tokens_details).toEqual({ thinking_tokens: 9 });
    const back = [{ type: "thinking", thinking: "hm", signature: "of another service" }, ...message.content];
    const next = { ...ask, messages: [...ask.messages, { role: "assistant", content: back }, ...says("echo")] };
    expect((await post(next)).status).toBe(200);
  });
});

describe("the billing line", () => {
  const line = (build: string) => `x-anthropic-billing-header: cc_version=2.1.329.${build}; cc_entrypoint=cli;`;
  const withLine = (build: string) =>
    asks("echo", "hi", {
      system: [
        { type: "text", text: line(build) },
        { type: "text", text: "You are an agent.", cache_control: { type: "ephemeral" } },
      ],
    });

  test("requests that differ in it alone reach the engine as the same bytes", async () => {
    await answered(withLine("f01"));
    await answered(withLine("a73"));
    const [one, other] = service.engine.requests.slice(-2).map(({ body }) => JSON.stringify(body));
    expect(one).toBe(other!);
    expect(one).not.toContain("billing");
  });

  test("stays where the operator says so", async () => {
    const kept = await startService({ more: "messages: { keep_billing_line: true }" });
    try {
      await (await kept.post(path, withLine("f01"))).text();
      expect(JSON.stringify(kept.engine.requests.at(-1)?.body)).toContain(line("f01"));
    } finally {
      await kept.stop();
    }
  }, 60_000);
});

describe("a refusal has the form of Messages", () => {
  const cases: [name: string, body: unknown, status: number, type: string, code: string, start: RegExp][] = [
    ["no JSON", "{", 400, "invalid_request_error", "invalid_json", /^The request body/],
    ["an array", [], 400, "invalid_request_error", "invalid_value", /^The request body must be an object/],
    ["no max_tokens", { model, messages: says("") }, 400, "invalid_request_error", "missing_field", /^max_tokens: /],
    [
      "no messages",
      { model, max_tokens: 1, messages: [] },
      400,
      "invalid_request_error",
      "invalid_value",
      /^messages: /,
    ],
    [
      "a cache to warm",
      asks("", "x", { max_tokens: 0 }),
      400,
      "invalid_request_error",
      "unsupported_feature",
      /^max_tokens: /,
    ],
    [
      "an unknown block",
      asks("", "", { messages: [{ role: "user", content: [{ type: "hologram" }] }] }),
      400,
      "invalid_request_error",
      "invalid_value",
      /^messages\[0\]\.content\[0\]\.type: /,
    ],
    [
      "an image that is none",
      asks("", "", {
        messages: [
          {
            role: "user",
            content: [{ type: "image", source: { type: "base64", media_type: "image/png", data: "bm90IGFuIGltYWdl" } }],
          },
        ],
      }),
      400,
      "invalid_request_error",
      "invalid_value",
      /^messages\[0\]\.content\[0\]\.source\.data: /,
    ],
    [
      "a result without a call",
      asks("", "", { messages: [{ role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_9" }] }] }),
      400,
      "invalid_request_error",
      "invalid_value",
      /^messages\[0\]\.content\[0\]\.tool_use_id: /,
    ],
    [
      "an image for a model that cannot see",
      {
        ...asks(""),
        model: plainModel,
        messages: [
          {
            role: "user",
            content: [{ type: "image", source: { type: "base64", media_type: "image/png", data: pixel } }],
          },
        ],
      },
      400,
      "invalid_request_error",
      "unsupported_feature",
      /^messages\[0\]\.content\[0\]: /,
    ],
    [
      "MCP servers",
      asks("", "x", { mcp_servers: [{}] }),
      400,
      "invalid_request_error",
      "unsupported_feature",
      /^mcp_servers: /,
    ],
    ["an unknown model", { ...asks(""), model: "acme/none" }, 404, "not_found_error", "model_not_found", /^model: /],
    [
      "an unknown model, streamed",
      { ...asks(""), model: "acme/none", stream: true },
      404,
      "not_found_error",
      "model_not_found",
      /^model: /,
    ],
    ["an engine at capacity", asks("status=429"), 429, "rate_limit_error", "capacity_exceeded", /./],
    ["an engine that fails", asks("status=500"), 503, "overloaded_error", "upstream_unavailable", /./],
    [
      "an engine that fails, streamed",
      asks("status=503", "x", { stream: true }),
      503,
      "overloaded_error",
      "overloaded",
      /./,
    ],
    ["too much for the engine", asks("context-length"), 400, "invalid_request_error", "context_length_exceeded", /./],
  ];
  test.each(cases)("%s", async (_name, body, status, type, code, start) => {
    const refused = await refusalOf(await post(body));
    expect(refused).toMatchObject({ status, type, code });
    expect(refused.message).toMatch(start);
  });

  test("message threads: what the SDK's tool runner acts on", async () => {
    const response = await post(asks("echo", "x", { thread: { type: "create" } }));
    expect(response.status).toBe(400);
    expect(((await response.json()) as Refusal).error.details).toMatchObject({
      error_code: "thread_unsupported_request",
      unsupported: ["thread"],
    });
  });

  test("401 and 403", async () => {
    const none = await post(asks(""), { key: null });
    expect(none.headers.get("www-authenticate")).toBe("Bearer");
    expect(await refusalOf(none)).toMatchObject({ status: 401, type: "authentication_error", code: "missing_api_key" });
    const garbage = await post(asks(""), { key: null, headers: { "x-api-key": "sk-ant-none" } });
    expect(await refusalOf(garbage)).toMatchObject({ status: 401, code: "invalid_api_key" });
    const { key } = await newMember(service, "unlimited", "--scopes", "models:read");
    expect(await refusalOf(await post(asks(""), { key }))).toMatchObject({
      status: 403,
      type: "permission_error",
      code: "missing_scope",
    });
  });

  test("404, 405 and 413", async () => {
    expect(await refusalOf(await service.fetch(`${path}/batches`))).toMatchObject({
      status: 404,
      type: "not_found_error",
      code: "route_not_found",
    });
    const other = await service.fetch(path);
    expect(other.headers.get("allow")).toBe("POST");
    expect(await refusalOf(other)).toMatchObject({ status: 405, type: "invalid_request_error" });
    const large = await post(asks("", "x".repeat(33 * 1024 * 1024)));
    expect(await refusalOf(large)).toMatchObject({ status: 413, type: "request_too_large" });
  });

  test("models answer in this form too, to clients that send anthropic-version", async () => {
    const headers = { "anthropic-version": "2026-10-21" };
    const unknown = await service.fetch("/v1/models/acme%2Fnone", { headers });
    expect(await refusalOf(unknown)).toMatchObject({ status: 404, type: "not_found_error", code: "model_not_found" });
    const nobody = await service.fetch("/v1/models", { headers, key: null });
    expect(await refusalOf(nobody)).toMatchObject({ status: 401, type: "authentication_error" });
    const details = (await (await service.fetch(`/v1/models/${model}`)).json()) as Record<string, unknown>;
    const record = (await (await service.fetch(`/v1/models/${model}`, { headers })).json()) as Record<string, unknown>;
    expect([record.max_input_tokens, record.max_tokens]).toEqual([details.context_window, details.max_output_tokens]);
    const list = (await (await service.fetch("/v1/models", { headers })).json()) as { data: unknown[] };
    expect(list.data).toContainEqual(record);
    const openai = await service.fetch("/v1/models/acme%2Fnone");
    expect(Object.keys((await openai.json()) as object)).toEqual(["error"]);
  });
});

describe("the key", () => {
  test("is taken from either header, and from the one that holds it", async () => {
    const body = asks("echo");
    const x = { "x-api-key": service.key };
    expect((await post(body, { key: null, headers: x })).status).toBe(200);
    const both = { ...x, authorization: "Bearer something-else" };
    expect((await post(body, { key: null, headers: both })).status).toBe(200);
  });

  test("any version, any beta and any query are taken", async () => {
    const headers = { "anthropic-version": "1999-01-01", "anthropic-beta": "never-heard-of-2030-01-01,x" };
    expect((await service.post(`${path}?beta=true`, asks("echo"), { headers })).status).toBe(200);
  });
});

describe("a stream", () => {
  test.each(["tps=100 cut-after=5", "error-after=5", "malformed-after=5", "no-finish no-done"])(
    "that breaks in the middle ends with an error event (%s)",
    async (fault) => {
      const events = await streamed(asks(`${fault} tokens=20 per-chunk=1`));
      const last = events.at(-1);
      expect(last?.type).toBe("error");
      expect(events.some((event) => event.type === "message_stop" || event.type === "message_delta")).toBe(false);
      if (last?.type === "error") expect(last.error.type).toBe("overloaded_error");
    },
  );

  test("of a silent engine begins, and is kept alive by pings", async () => {
    const quiet = await startService({
      limits: "{ first_event_hold_ms: 20, heartbeat_ms: 50 }",
      engine: { directives: "", namesModel: false },
    });
    try {
      const response = await quiet.post(path, { ...asks("ttft=400 tokens=3"), stream: true });
      const text = await response.text();
      expect(text).toMatch(/^event: message_start\n.*\n\nevent: ping\n/);
      expect(text.match(/event: ping/g)?.length).toBeGreaterThan(2);
      expect(text).toMatch(/event: message_stop\ndata: .*\n\n$/);
    } finally {
      await quiet.stop();
    }
  }, 60_000);

  test("that its client leaves stops the engine", async () => {
    const before = service.engine.counts.clients_left;
    const abort = new AbortController();
    const response = await fetch(`${service.url}${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${service.key}`, "content-type": "application/json" },
      body: JSON.stringify({ ...asks("tokens=2000 tps=50"), stream: true }),
      signal: abort.signal,
    });
    await response.body!.getReader().read();
    abort.abort();
    await until(() => service.engine.counts.clients_left > before, 5_000, "the engine to be left");
  });
});

test("usage equals that of chat for the same request, in the receipt to the last unit", async () => {
  const directives = "tokens=30 reasoning=10 cached=3";
  const receiptOf = async (response: Response) => {
    await response.text();
    return endedReceipt(service, requestIdOf(response));
  };
  const messages = await receiptOf(await post(asks(directives)));
  const chat = await receiptOf(
    await service.post("/v1/chat/completions", { model, max_tokens: 1024, messages: says(directives) }),
  );
  const streamedToo = await receiptOf(await post(asks(directives, "hello there", { stream: true })));
  expect(messages).toMatchObject({ operation: "messages", outcome: "completed" });
  expect(messages.usage).toEqual(chat.usage);
  expect(nanosOf(messages.cost.charged)).toBe(nanosOf(chat.cost.charged));
  expect(streamedToo.usage).toEqual(chat.usage);
});
