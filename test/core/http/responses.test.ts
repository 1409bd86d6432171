/** POST /v1/responses over real sockets: what its clients send, and what they need back. */
import { afterAll, describe, expect, test } from "bun:test";
import type { ResponseObject } from "../../../src/core/protocol/openai-responses/contract.ts";
import { model, plainModel, type Service, smallModel, startService, words } from "../../harness/engine.ts";
import { eventsOf, finalOf, textOf } from "../../harness/responses.ts";

const path = "/v1/responses";
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
});

describe("tools", () => {});

describe("a refusal", () => {
  const hosted = { type: "web_search" };
  test.each<[string, object, number, string, string | null]>([
    ["an unknown model", { model: "acme/none", input: "x" }, 404, "model_not_found", "model"],
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
  ])("%s", async (_, body, status, code, param) => {
    for (const stream of [false, true]) {
      const refused = await post({ ...body, stream });
      expect(refused.headers.get("content-type")).toBe("application/json");
      expect(await refusalOf(refused)).toEqual({ status, type: "invalid_request_error", code, param });
    }
  });
});

describe("a stream", () => {
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
