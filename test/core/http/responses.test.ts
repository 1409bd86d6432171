/** POST /v1/responses over real sockets: what its clients send, and what they need back. */
import { afterAll, describe, expect, test } from "bun:test";
import type { ResponseObject } from "../../../src/core/protocol/openai-responses/contract.ts";
import { model, type Service, smallModel, startService, words } from "../../harness/engine.ts";
import { eventsOf, finalOf } from "../../harness/responses.ts";

const path = "/v1/responses";
const parameters = { type: "object", properties: { place: { type: "string" } }, required: ["place"] };
const weather = { type: "function", name: "get_weather", description: "The weather at a place.", parameters };

const service = await startService({ engine: { directives: "", namesModel: false } });
afterAll(() => service.stop(), 60_000);

const asks = (directives: string, text = "hello there", more: object = {}) => ({
  model,
  input: `${directives ? `[simulator: ${directives}] ` : ""}${text}`,
  ...more,
});
const post = (body: unknown, init: Parameters<Service["post"]>[2] = {}) => service.post(path, body, init);
const answered = async (body: unknown) => (await (await post(body)).json()) as ResponseObject;
const streamed = async (body: object) => eventsOf(await post({ ...body, stream: true }));

describe("a response", () => {
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
