/** POST /v1/responses over real sockets: what its clients send, and what they need back. */
import { afterAll, describe, expect, test } from "bun:test";
import type { ResponseObject } from "../../../src/core/protocol/openai-responses/contract.ts";
import { model, plainModel, type Service, smallModel, startService, words } from "../../harness/engine.ts";
import { newMember } from "../../harness/organizations.ts";
import { endedReceipt, requestIdOf } from "../../harness/receipts.ts";
import { eventsOf, finalOf, textOf } from "../../harness/responses.ts";
import { until } from "../../harness/until.ts";

const path = "/v1/responses";
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const parameters = { type: "object", properties: { place: { type: "string" } }, required: ["place"] };
const weather = { type: "function", name: "get_weather", description: "The weather at a place.", parameters };

const plans = { small: "{ session: 14000, requests_per_minute: 100 }" };

const service = await startService({ engine: { directives: "", namesModel: false }, plans });
afterAll(() => service.stop(), 60_000);

const asks = (directives: string, text = "hello there", more: object = {}) => ({
  model,
  input: `${directives ? `[simulator: ${directives}] ` : ""}${text}`,
  ...more,
});
const post = (body: unknown, init: Parameters<Service["post"]>[2] = {}) => service.post(path, body, init);
const answered = async (body: unknown) => (await (await post(body)).json()) as ResponseObject;
const streamed = async (body: object) => eventsOf(await post({ ...body, stream: true }));
const sent = () => service.engine.requests.at(-1)?.body as Record<string, unknown>;

interface Refusal {
  error: { type: string; code: string; param: string | null; message: string; [key: string]: unknown };
}
const refusalOf = async (response: Response) => {
  const { error } = (await response.json()) as Refusal;
  return { status: response.status, type: error.type, code: error.code, param: error.param };
};

describe("a response", () => {
  test("is answered with its text, its usage, and ids of its own", async () => {
    const response = await post(asks("echo", words(7), { instructions: "Be brief." }));
    expect(response.headers.get("x-service-usage-session-percent")).toBe("0");
    expect(response.headers.get("x-request-id")).toMatch(/^req_[0-9a-f]{32}$/);
    const answer = (await response.json()) as ResponseObject;
    expect(answer).toMatchObject({
      object: "response",
      status: "completed",
      model,
      instructions: "Be brief.",
      output: [{ type: "message", role: "assistant", status: "completed" }],
      usage: { output_tokens: 7, input_tokens_details: { cached_tokens: 0 } },
      error: null,
      incomplete_details: null,
    });
    expect(answer.id).toMatch(/^resp_[0-9a-f]{32}$/);
    expect(answer.completed_at).toBeGreaterThanOrEqual(answer.created_at);
    expect(textOf(answer)).toBe(words(7));
    expect(sent().messages).toMatchObject([{ role: "system", content: "Be brief." }, { role: "user" }]);
  });

  test("says the same streamed and not", async () => {
    const ask = asks("reasoning=9 calls=2 text-with-calls", "weather", { tools: [weather], store: false });
    const shape = ({ output, usage, status }: ResponseObject) => ({
      output: output.map((item) => ({ ...item, id: "", ...(item.type === "function_call" ? { call_id: "" } : {}) })),
      usage,
      status,
    });
    const whole = await answered(ask);
    const events = await streamed(ask);
    expect(shape(finalOf(events))).toEqual(shape(whole));
    expect(whole.output.map(({ type }) => type)).toEqual(["reasoning", "message", "function_call", "function_call"]);
    const done = events.flatMap((event) => (event.type === "response.output_item.done" ? [event.item] : []));
    expect(done).toEqual(finalOf(events).output);
    expect(finalOf(events).completed_at).not.toBeNull();
  });

  test("takes items of all roles, with type or without, and images", async () => {
    const answer = await answered({
      model,
      input: [
        { role: "developer", content: "Answer in Latin." },
        { type: "message", role: "system", content: [{ type: "input_text", text: "Be kind." }] },
        { role: "user", content: "one" },
        { type: "message", role: "assistant", content: [{ type: "output_text", text: "two" }] },
        {
          role: "user",
          content: [
            { type: "input_text", text: "look" },
            { type: "input_image", image_url: `data:image/png;base64,${pixel}`, detail: "original" },
          ],
        },
      ],
    });
    expect(textOf(answer)).toContain("I was given 1 image(s)");
    const told = JSON.stringify(sent());
    for (const said of ["Answer in Latin.", "Be kind.", "two", `data:image/png;base64,${pixel}`])
      expect(told).toContain(said);
  });

  test("is cut by its cap as incomplete, the last item with it; a cap is lowered to what the model can", async () => {
    for (const ask of [
      asks("echo", words(50), { max_output_tokens: 5 }),
      { ...asks("tokens=300", "x", { max_output_tokens: 32_000 }), model: smallModel },
    ]) {
      for (const answer of [await answered(ask), finalOf(await streamed(ask))]) {
        expect(answer).toMatchObject({
          status: "incomplete",
          incomplete_details: { reason: "max_output_tokens" },
          output: [{ status: "incomplete" }],
          completed_at: null,
        });
      }
    }
  });

  test("structured output comes by text.format; hints to a model that does not reason are none", async () => {
    const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
    const format = { type: "json_schema", name: "place", schema, strict: true };
    const answer = await answered(asks("", "a city", { text: { format, verbosity: "low" } }));
    expect(Object.keys(JSON.parse(textOf(answer)))).toEqual(["city"]);
    const hinted = { ...asks("echo"), model: plainModel, reasoning: { effort: "high", summary: "auto" } };
    expect((await post(hinted)).status).toBe(200);
    expect(sent()).not.toHaveProperty("reasoning_effort");
  });

  test("all other fields of Codex are accepted", async () => {
    const answer = await post({
      ...asks("echo", "hi", { tools: [weather, { type: "web_search", external_web_access: true }] }),
      include: ["reasoning.encrypted_content"],
      prompt_cache_key: "x",
      client_metadata: { a: "b" },
      parallel_tool_calls: true,
      tool_choice: "auto",
      store: false,
      stream: true,
    });
    expect(answer.status).toBe(200);
    expect(finalOf(await eventsOf(answer)).store).toBe(false);
    expect((sent().tools as { function: { name: string } }[]).map((tool) => tool.function.name)).toEqual([
      "get_weather",
    ]);
  });
});

describe("tools", () => {
  test.each(["", "quirk=interleaved-tools", "quirk=same-ids", "quirk=index-missing", "quirk=two-calls-one-chunk"])(
    "two parallel calls, streamed and not, and their results (%s)",
    async (quirk) => {
      const tools = [weather, { ...weather, name: "get_time" }];
      const ask = asks(`calls=2 ${quirk}`, "weather and time", { tools, store: false });
      for (const answer of [await answered(ask), finalOf(await streamed(ask))]) {
        const calls = answer.output.filter((item) => item.type === "function_call");
        expect(calls.map(({ name }) => name)).toEqual(["get_weather", "get_time"]);
        expect(new Set(calls.map(({ call_id }) => call_id)).size).toBe(2);
        expect(new Set(calls.map(({ id }) => id)).size).toBe(2);
        const results = calls.map(({ call_id }, at) => ({
          type: "function_call_output",
          call_id,
          output: at === 0 ? "4 degrees" : [{ type: "input_text", text: "noon" }],
        }));
        const next = await answered({
          ...ask,
          input: [{ role: "user", content: "both" }, ...answer.output, ...results],
        });
        expect(textOf(next)).toContain("4 degrees");
        const roles = (sent().messages as { role: string }[]).map(({ role }) => role);
        expect(roles).toEqual(["user", "assistant", "tool", "tool"]);
      }
    },
  );

  test("in a namespace, with plain input, and beside the list come back as they were given", async () => {
    const patch = {
      type: "custom",
      name: "apply_patch",
      format: { type: "grammar", syntax: "lark", definition: "start: /.+/" },
    };
    const agents = { type: "namespace", name: "agents", tools: [{ ...weather, name: "spawn" }] };
    const extra = { type: "additional_tools", role: "developer", tools: [{ ...weather, name: "extra" }] };
    const ask = asks("calls=3", "go", { tools: [patch, agents], store: false });
    const input = [extra, { role: "user", content: ask.input }];
    const { output } = await answered({ ...ask, input });
    expect(output).toMatchObject([
      { type: "custom_tool_call", name: "apply_patch" },
      { type: "function_call", name: "spawn", namespace: "agents" },
      { type: "function_call", name: "extra" },
    ]);
    const results = output.map((item) => ({
      type: item.type === "custom_tool_call" ? "custom_tool_call_output" : "function_call_output",
      call_id: "call_id" in item ? item.call_id : "",
      output: "done",
    }));
    expect((await post({ ...ask, input: [...input, ...output, ...results] })).status).toBe(200);
  });

  test("with allowed_tools the engine gets no other tool", async () => {
    const tools = [weather, { ...weather, name: "other" }];
    const tool_choice = { type: "allowed_tools", mode: "required", tools: [{ type: "function", name: "other" }] };
    const { output } = await answered(asks("", "go", { tools, tool_choice, store: false }));
    expect(output).toMatchObject([{ type: "function_call", name: "other" }]);
    expect(JSON.stringify(sent())).not.toContain("get_weather");
  });
});

describe("a refusal", () => {
  const hosted = { type: "web_search" };
  test.each<[string, object, number, string, string | null]>([
    ["no model", { input: "x" }, 400, "missing_field", "model"],
    ["an unknown model", { model: "acme/none", input: "x" }, 404, "model_not_found", "model"],
    ["no input", { model }, 400, "missing_field", "input"],
    ["null for input", { model, input: null }, 400, "invalid_value", "input"],
    ["an empty list", { model, input: [] }, 400, "invalid_value", "input"],
    ["a number for input", { model, input: 7 }, 400, "invalid_value", "input"],
    ["an unknown role", { model, input: [{ role: "robot", content: "x" }] }, 400, "invalid_value", "input[0].role"],
    ["an unknown item", { model, input: [{ type: "dance" }] }, 400, "invalid_value", "input[0].type"],
    [
      "a result without a call",
      { model, input: [{ type: "function_call_output", call_id: "c", output: "x" }] },
      400,
      "invalid_value",
      "input[0].call_id",
    ],
    ["a conversation", { model, input: "x", conversation: "conv_1" }, 400, "unsupported_feature", "conversation"],
    ["a stored prompt", { model, input: "x", prompt: { id: "p" } }, 400, "unsupported_feature", "prompt"],
    ["a hosted tool alone", { model, input: "x", tools: [hosted] }, 400, "unsupported_feature", "tools[0].type"],
    [
      "a hosted tool asked for",
      { model, input: "x", tools: [weather, hosted], tool_choice: hosted },
      400,
      "unsupported_feature",
      "tool_choice.type",
    ],
    [
      "tools of a model that has none",
      { model: plainModel, input: "x", tools: [weather] },
      400,
      "unsupported_feature",
      "tools",
    ],
    [
      "an unknown previous response",
      { model, input: "x", previous_response_id: "resp_x" },
      400,
      "previous_response_not_found",
      "previous_response_id",
    ],
  ])("%s", async (_, body, status, code, param) => {
    for (const stream of [false, true]) {
      const refused = await post({ ...body, stream });
      expect(refused.headers.get("content-type")).toBe("application/json");
      expect(await refusalOf(refused)).toEqual({ status, type: "invalid_request_error", code, param });
    }
  });

  test("401, 403, 405, 413, and no JSON", async () => {
    expect(await refusalOf(await post(asks(""), { key: null }))).toMatchObject({
      status: 401,
      code: "missing_api_key",
    });
    const { key } = await newMember(service, "unlimited", "--scopes", "models:read");
    expect(await refusalOf(await post(asks(""), { key }))).toMatchObject({ status: 403, code: "missing_scope" });
    const other = await service.fetch(path);
    expect(other.headers.get("allow")).toBe("POST");
    expect(await refusalOf(other)).toMatchObject({ status: 405, code: "method_not_allowed" });
    const large = await post(asks("", "x".repeat(33 * 1024 * 1024)));
    expect(await refusalOf(large)).toMatchObject({ status: 413, code: "request_too_large" });
    expect(await refusalOf(await post("{"))).toMatchObject({ status: 400, code: "invalid_json" });
  });

  test("a window with too little left is refused so that Codex stops, and the refusal says until when", async () => {
    const { key } = await newMember(service, "small");
    let refused = await post(asks("tokens=10", "x", { max_output_tokens: 10 }), { key });
    await until(
      async () => {
        await refused.clone().text();
        if (refused.status === 429 && refused.headers.get("retry-after") !== "1") return true;
        refused = await post(asks("tokens=10", "x", { max_output_tokens: 10 }), { key });
        return false;
      },
      20_000,
      "the session to be full of settled use",
    );
    const { error } = (await refused.json()) as Refusal;
    expect(error).toMatchObject({ type: "usage_limit_reached", window: "session", plan_type: "small" });
    expect(error.resets_at).toBeNumber();
    expect(refused.headers.get("x-should-retry")).toBe("false");
    expect(refused.headers.get("retry-after")).toBeNull();
  }, 30_000);
});

describe("a stream", () => {
  test("whose engine breaks off ends with response.failed; what was produced is charged", async () => {
    for (const directive of ["cut-after=5", "error-after=5", "malformed-after=5"]) {
      const response = await post({ ...asks(directive, words(20)), stream: true });
      const events = await eventsOf(response);
      expect(events.at(-1)?.type).toBe("response.failed");
      expect(finalOf(events)).toMatchObject({ status: "failed", error: { code: "server_error" } });
      expect((await endedReceipt(service, requestIdOf(response))).outcome).toBe("failed");
    }
  });

  test("that fails before it began has its status", async () => {
    for (const stream of [false, true]) {
      const refused = await post({ ...asks("status=500"), stream });
      expect(await refusalOf(refused)).toMatchObject({ status: 503, code: "upstream_unavailable" });
    }
  });

  test("of a silent engine begins with response.created, and is kept alive by response.in_progress", async () => {
    const quick = await startService({
      engine: { directives: "", namesModel: false },
      limits: "{ first_event_hold_ms: 100, heartbeat_ms: 50 }",
    });
    try {
      const events = await eventsOf(await quick.post(path, { ...asks("echo ttft=600", "late"), stream: true }));
      const types = events.map(({ type }) => type);
      expect(types[0]).toBe("response.created");
      expect(types.filter((type) => type === "response.in_progress").length).toBeGreaterThan(2);
      expect(textOf(finalOf(events))).toBe("late");
    } finally {
      await quick.stop();
    }
  }, 60_000);
});
