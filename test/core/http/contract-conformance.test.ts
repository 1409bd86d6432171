/**
 * The check that compares every answer of a test run with the contract finds each kind of violation. All other tests,
 * whose answers it checks, show that it reports nothing else.
 */
import { describe, expect, test } from "bun:test";
import { Fault } from "../../../src/core/inference/fault.ts";
import { encodeFault as encodeMessagesFault } from "../../../src/core/protocol/anthropic-messages/fault.ts";
import { encodeFault } from "../../../src/core/protocol/openai-chat/fault.ts";
import { encodeFault as encodeResponsesFault } from "../../../src/core/protocol/openai-responses/fault.ts";
import { operations } from "../../../src/node/operations.ts";
import { type Answer, responseValidator } from "../../harness/conformance.ts";

const id = `req_${"0".repeat(32)}`;
const ids = { "x-service-request-id": id, "x-request-id": id, "request-id": id };
const check = responseValidator();
const chat = "/v1/chat/completions";

function answer(method: string, path: string, status: number, body: unknown, headers: Record<string, string> = {}) {
  const text = typeof body === "string" || body === null ? body : JSON.stringify(body);
  const all = new Headers({ "content-type": "application/json", ...ids, ...headers });
  if (status >= 400 && status < 500 && status !== 429) all.set("x-should-retry", "false");
  return check({ method, path, status, headers: all, body: text } satisfies Answer);
}

const head = { id: `chatcmpl-${"0".repeat(32)}`, object: "chat.completion.chunk", created: 1, model: "a/b" };
const chunk = (delta: object, finish_reason: string | null = null) =>
  `data: ${JSON.stringify({ ...head, choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
const stream = (body: string) =>
  answer("POST", chat, 200, body, { "content-type": "text/event-stream; charset=utf-8" });
const completion = {
  ...head,
  object: "chat.completion",
  choices: [
    { index: 0, message: { role: "assistant", content: "x", refusal: null }, logprobs: null, finish_reason: "stop" },
  ],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
};

const messages = "/v1/messages";
const message = {
  id: `msg_${"0".repeat(32)}`,
  type: "message",
  role: "assistant",
  model: "a/b",
  content: [],
  stop_reason: null,
  stop_sequence: null,
  usage: { input_tokens: 1, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 0 },
};
const event = (data: { type: string } & Record<string, unknown>) =>
  `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
const started = event({ type: "message_start", message });
const blockStart = (index: number) =>
  event({ type: "content_block_start", index, content_block: { type: "text", text: "" } });
const blockDelta = (index: number, delta: object = { type: "text_delta", text: "x" }) =>
  event({ type: "content_block_delta", index, delta });
const thinking = blockDelta(0, { type: "thinking_delta", thinking: "x" });
const blockStop = (index: number) => event({ type: "content_block_stop", index });
const block = (index: number) => blockStart(index) + blockDelta(index) + blockStop(index);
const ended =
  event({ type: "message_delta", delta: { stop_reason: "end_turn", stop_sequence: null }, usage: message.usage }) +
  event({ type: "message_stop" });
const ping = event({ type: "ping" });
const messagesStream = (...frames: string[]) =>
  answer("POST", messages, 200, frames.join(""), { "content-type": "text/event-stream; charset=utf-8" });

const responses = "/v1/responses";
const kept = `${responses}/resp_${"0".repeat(32)}`;

const encoders: Record<string, (fault: Fault, requestId: string) => object> = {
  [chat]: encodeFault,
  [messages]: encodeMessagesFault,
  [responses]: encodeResponsesFault,
};
type Code = ConstructorParameters<typeof Fault>[0];
/** The body of a refusal in the protocol of the path `spoken`. */
const refusal = (code: Code, spoken = chat) => encoders[spoken]!(new Fault(code, "Because."), id);
const refused = (path: string, status: number, code: Code, headers: Record<string, string> = {}, spoken = path) =>
  answer("POST", path, status, refusal(code, spoken), headers);
const chatFailure = `data: ${JSON.stringify(refusal("upstream_unavailable"))}\n\n`;
const failure = event(refusal("overloaded", messages) as unknown as { type: string });
const final = { "x-should-retry": "false" };

test("every example answer of the contract conforms to it", () => {
  for (const operation of operations) {
    const described = { 200: operation.success, ...operation.success.also };
    for (const [status, { content }] of Object.entries(described)) {
      for (const [type, { example }] of Object.entries(content)) {
        if (example === undefined) continue;
        const path = operation.path.replace("{id}", "a");
        const headers = { "content-type": type, ...(status === "503" ? { "retry-after": "1" } : {}) };
        expect(answer(operation.method.toUpperCase(), path, Number(status), example, headers)).toEqual([]);
      }
    }
  }
});

test("what is right is let pass, and so is every kind of refusal and stream that is changed below", () => {
  for (const problems of [
    answer("POST", chat, 200, completion),
    answer("POST", chat, 200, null),
    answer("HEAD", "/v1/models", 200, null),
    refused(chat, 400, "unknown_field"),
    refused(messages, 429, "usage_limit_reached", final),
    refused(responses, 429, "usage_limit_reached", final),
    stream(`${chunk({ role: "assistant", content: "" })}: quiet\n\n${chunk({}, "stop")}data: [DONE]\n\n`),
    stream(`${chunk({ content: "x" })}${chatFailure}data: [DONE]\n\n`),
    messagesStream(started, ping, block(0), block(1), ended),
    messagesStream(started, blockStart(0), failure),
    answer("DELETE", kept, 404, refusal("response_not_found", responses)),
  ])
    expect(problems).toEqual([]);
});

describe("finds", () => {
  const wrong: Record<string, string[]> = {
    "a field too many": answer("POST", chat, 200, { ...completion, extra: 1 }),
    "a field too few": answer("POST", chat, 200, { ...completion, usage: undefined }),
    "a nested field too many": answer("POST", chat, 200, { ...completion, usage: { ...completion.usage, cost: 1 } }),
    "an error without its five keys": answer("POST", chat, 400, { error: { message: "x", type: "api_error" } }),
    "a code of another status": refused(chat, 400, "internal_error"),
    "a code of another operation": refused(chat, 404, "request_not_found"),
    "another request id": refused(chat, 400, "invalid_json", { "x-service-request-id": `req_${"1".repeat(32)}` }),
    "no request id": answer("GET", "/livez", 200, { status: "ok" }, { "x-service-request-id": "" }),
    "401 without www-authenticate": answer("GET", "/v1/models", 401, refusal("missing_api_key")),
    "429 without retry-after": refused(chat, 429, "capacity_exceeded"),
    "429 with a wait of more than a minute": refused(chat, 429, "usage_limit_reached", {
      ...final,
      "retry-after": "61",
    }),
    "a header that is not described there": refused(chat, 429, "rate_limit_exceeded", {
      "retry-after": "1",
      "anthropic-ratelimit-requests-remaining": "0",
    }),
    "405 without allow": answer("PUT", chat, 405, refusal("method_not_allowed")),
    "another content type": answer("GET", "/livez", 200, "ok", { "content-type": "text/plain" }),
    "a body that is no JSON": answer("GET", "/livez", 200, "<html>"),
    "a body of HEAD": answer("HEAD", "/livez", 200, "{}"),
    "a status that is not described": answer("GET", "/livez", 204, ""),
    "a stream without its end": stream(chunk({ content: "x" })),
    "a stream with two ends": stream(`${chunk({}, "stop")}data: [DONE]\n\ndata: [DONE]\n\n`),
    "an event with a name": stream(`event: x\n${chunk({}, "stop")}data: [DONE]\n\n`),
    "a chunk after an error": stream(`${chatFailure}${chunk({}, "stop")}data: [DONE]\n\n`),
    "an error of chat where Messages is spoken": refused(messages, 400, "invalid_value", {}, chat),
    "an error of Messages where chat is spoken": refused(chat, 400, "invalid_value", {}, messages),
    "blocks that overlap": messagesStream(started, blockStart(0), blockStart(1), blockStop(1), ended),
    "a block that is left out": messagesStream(started, block(1), ended),
    "a delta of another block": messagesStream(started, blockStart(0), blockDelta(1), blockStop(0), ended),
    "a delta of another kind": messagesStream(started, blockStart(0), thinking, blockStop(0), ended),
    "a block without its stop": messagesStream(started, blockStart(0), ended),
    "a message without its start": messagesStream(block(0), ended),
    "a message without its stop": messagesStream(started, block(0)),
    "something after the stop": messagesStream(started, ended, ping.replaceAll("ping", "message_stop")),
    "an event without a name": messagesStream(started.replace(/^event.*\n/, ""), ended),
    "an event with another name": messagesStream(started, ping.replace("event: ping", "event: pong"), ended),
    "an error of Messages where Responses are spoken": refused(responses, 400, "invalid_value", {}, messages),
    "a usage window that is full, in the word of chat": refused(responses, 429, "usage_limit_reached", final, chat),
    "what is kept, of an operation that keeps nothing": refused(chat, 404, "response_not_found"),
    "an id that changes": stream(`${chunk({})}${chunk({}).replace("chatcmpl-0", "chatcmpl-1")}data: [DONE]\n\n`),
  };
  for (const [name, problems] of Object.entries(wrong)) test(name, () => expect(problems).not.toEqual([]));
});
