/** POST /v1/messages over real sockets: what its clients send, and what they need back. */
import { afterAll, describe, expect, test } from "bun:test";
import type { Message } from "../../../src/core/protocol/anthropic-messages/contract.ts";
import { model, plainModel, type Service, says, smallModel, startService, words } from "../../harness/engine.ts";
import { eventsOf, gathered } from "../../harness/messages.ts";
import { endedReceipt, requestIdOf } from "../../harness/receipts.ts";

const path = "/v1/messages";
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

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

  test("the cap ends it with max_tokens, and is lowered to what the model can", async () => {
    const short = await answered(asks("echo", words(50), { max_tokens: 5 }));
    expect(short).toMatchObject({ stop_reason: "max_tokens", content: [{ text: words(5) }] });
    const capped = await answered({ ...asks("tokens=300"), model: smallModel, max_tokens: 32_000 });
    expect(capped).toMatchObject({ stop_reason: "max_tokens", usage: { output_tokens: 256 } });
  });
});

test("the billing line stays where the operator says so", async () => {
  const line = "x-anthropic-billing-header: cc_version=2.1.329.f01; cc_entrypoint=cli;";
  const system = [
    { type: "text", text: line },
    { type: "text", text: "You are an agent.", cache_control: { type: "ephemeral" } },
  ];
  const kept = await startService({ more: "messages: { keep_billing_line: true }" });
  try {
    await (await kept.post(path, asks("echo", "hi", { system }))).text();
    expect(JSON.stringify(kept.engine.requests.at(-1)?.body)).toContain(line);
  } finally {
    await kept.stop();
  }
}, 60_000);

describe("a refusal has the form of Messages", () => {
  const cases: [name: string, body: unknown, status: number, type: string, code: string, start: RegExp][] = [
    ["no JSON", "{", 400, "invalid_request_error", "invalid_json", /^The request body/],
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
      "an engine that fails, streamed",
      asks("status=503", "x", { stream: true }),
      503,
      "overloaded_error",
      "overloaded",
      /./,
    ],
  ];
  test.each(cases)("%s", async (_name, body, status, type, code, start) => {
    const refused = await refusalOf(await post(body));
    expect(refused).toMatchObject({ status, type, code });
    expect(refused.message).toMatch(start);
  });
});

test("any version, any beta and any query are taken", async () => {
  const headers = { "anthropic-version": "1999-01-01", "anthropic-beta": "never-heard-of-2030-01-01,x" };
  expect((await service.post(`${path}?beta=true`, asks("echo"), { headers })).status).toBe(200);
});

test.each(["tps=100 cut-after=5", "error-after=5", "malformed-after=5", "no-finish no-done"])(
  "a stream that breaks in the middle ends with an error event (%s)",
  async (fault) => {
    const events = await streamed(asks(`${fault} tokens=20 per-chunk=1`));
    const last = events.at(-1);
    expect(last?.type).toBe("error");
    expect(events.some((event) => event.type === "message_stop" || event.type === "message_delta")).toBe(false);
    if (last?.type === "error") expect(last.error.type).toBe("overloaded_error");
  },
);
