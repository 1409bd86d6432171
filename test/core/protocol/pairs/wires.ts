/**
 * The requests and the reading of each kind of client, written by hand and not by the codecs under test: they translate
 * between a protocol-neutral conversation (`Ask`, `Answer`) and the wire format. The answers of engines are in
 * engines.ts.
 */
import type { InferenceEvent } from "../../../../src/core/inference/event.ts";
import type { InferenceRequest, Protocol } from "../../../../src/core/inference/request.ts";
import type { Result } from "../../../../src/core/inference/result.ts";
import { anthropicMessagesCaller } from "../../../../src/core/protocol/anthropic-messages/codec.ts";
import { validateMessagesRequest } from "../../../../src/core/protocol/anthropic-messages/validate.ts";
import type { CallerCodec, ResponseIdentity } from "../../../../src/core/protocol/codec.ts";
import { openaiChatCaller } from "../../../../src/core/protocol/openai-chat/codec.ts";
import { validateChatRequest } from "../../../../src/core/protocol/openai-chat/validate.ts";
import { openaiResponsesCaller } from "../../../../src/core/protocol/openai-responses/codec.ts";
import { validateResponsesRequest } from "../../../../src/core/protocol/openai-responses/validate.ts";
import type { SseMessage } from "../../../../src/core/sse/decode.ts";
import { type UpstreamProtocol, upstreamProtocols } from "../../../../src/core/upstream/codecs.ts";
import { writtenBy } from "../events.ts";

/** The tests' name for each protocol. */
const nameOf = {
  "openai-chat": "chat",
  "anthropic-messages": "messages",
  "openai-responses": "responses",
} as const satisfies Record<Protocol, string>;
type Named = typeof nameOf;
/** The protocols that clients speak, which are the keys of `wires`. */
export type ClientName = keyof typeof wires;
/** The protocols that engines speak. */
export type EngineName = Named[UpstreamProtocol & keyof Named];
/** Every test of pairs takes its engines from here, and its clients from `clientNames`. */
export const engineNames: readonly EngineName[] = upstreamProtocols.map((protocol) => nameOf[protocol]);

interface Called {
  id: string;
  name: string;
  input: Record<string, unknown>;
}

export interface Ask {
  instructions: string;
  question: string;
  tools?: string[];
  /** The client asks for all that a stream may tell: the usage, summaries of reasoning, and the stop sequence found. */
  everything?: boolean;
}

export interface Answer {
  reasoning: string;
  text: string;
  calls: Called[];
  end: "stop" | "length" | "tool_calls" | "content_filter" | "failed" | "none";
}

/** Parsed JSON, which is read as a client without types reads it. */
export interface Json {
  [key: string]: Json;
}
export const parsed = (text: string) => JSON.parse(text) as Json;
export const textOf = (value: unknown) => (typeof value === "string" ? value : "");
const listOf = (value: unknown) => (Array.isArray(value) ? (value as Json[]) : []);

// ---- clients ---------------------------------------------------------------------------------------------------------

export interface Caller {
  codec: { fault: CallerCodec<never, unknown>["fault"] };
  identity: ResponseIdentity;
  decode(ask: Ask, stream: boolean): InferenceRequest;
  /** The frames of the stream that the service writes for these events. */
  written(ask: Ask, events: readonly InferenceEvent[]): SseMessage[];
  readStream(ask: Ask, events: readonly InferenceEvent[]): Answer;
  readWhole(ask: Ask, result: Result): Answer;
}

export interface Wire {
  path: string;
  idPrefix: string;
  body(ask: Ask): object;
  readFrames(frames: { event?: string; data: string }[]): Answer;
  readReply(reply: Json): Answer;
}

function caller<Body, Reply>(codec: CallerCodec<Body, Reply>, validate: (body: unknown) => Body, wire: Wire): Caller {
  const identity = {
    responseId: `${wire.idPrefix}${"0".repeat(32)}`,
    createdAtSeconds: 1_790_000_000,
    model: "acme/writer-1",
  };
  const bodyOf = (ask: Ask, stream: boolean) => validate(JSON.parse(JSON.stringify({ ...wire.body(ask), stream })));
  const written: Caller["written"] = (ask, events) => {
    const encoder = codec.stream.encoder(bodyOf(ask, true), { requestId, identity, inputTokensEstimate: 1 });
    return writtenBy(encoder, events);
  };
  return {
    codec,
    identity,
    decode: (ask, stream) => codec.request.decode(bodyOf(ask, stream)),
    written,
    readStream: (ask, events) => wire.readFrames(written(ask, events)),
    readWhole: (ask, result) =>
      wire.readReply(parsed(JSON.stringify(codec.response.encode(result, bodyOf(ask, false))))),
  };
}

const model = "acme/writer-1";
const requestId = `req_${"1".repeat(32)}`;
const schemaOf = (name: string) => ({ type: "object", properties: { [`PROPERTY-${name}`]: { type: "string" } } });

const chatWire: Wire = {
  path: "/v1/chat/completions",
  idPrefix: "chatcmpl-",
  body: (ask) => ({
    model,
    messages: [
      { role: "system", content: ask.instructions },
      { role: "user", content: ask.question },
    ],
    tools: ask.tools?.map((name) => ({ type: "function", function: { name, parameters: schemaOf(name) } })),
    ...(ask.everything ? { stream_options: { include_usage: true } } : {}),
  }),
  readFrames(frames) {
    const answer: Answer = { reasoning: "", text: "", calls: [], end: "none" };
    const written: string[] = [];
    for (const { data } of frames) {
      if (data === "[DONE]") continue;
      const chunk = parsed(data);
      if (chunk.error) answer.end = "failed";
      const choice = listOf(chunk.choices)[0];
      if (!choice) continue;
      answer.text += textOf(choice.delta?.content);
      answer.reasoning += textOf(choice.delta?.reasoning_content);
      for (const call of listOf(choice.delta?.tool_calls)) {
        const at = Number(call.index);
        if (call.id) answer.calls[at] = begunCall(call);
        written[at] = (written[at] ?? "") + textOf(call.function?.arguments);
      }
      if (choice.finish_reason) answer.end = textOf(choice.finish_reason) as Answer["end"];
    }
    return withInputs(answer, written);
  },
  readReply(reply) {
    const choice = listOf(reply.choices)[0];
    return {
      reasoning: textOf(choice?.message?.reasoning_content),
      text: textOf(choice?.message?.content),
      calls: listOf(choice?.message?.tool_calls).map((call) => ({
        ...begunCall(call),
        input: parsed(textOf(call.function?.arguments)),
      })),
      end: textOf(choice?.finish_reason) as Answer["end"],
    };
  },
};

function begunCall(call: Json): Called {
  return { id: textOf(call.id), name: textOf(call.function?.name), input: {} };
}

/**
 * The answer with the arguments of its calls parsed, once all of them are there; a failed answer's may be cut, and stay
 * as they are.
 */
function withInputs(answer: Answer, written: string[]): Answer {
  if (answer.end === "failed") return answer;
  return { ...answer, calls: answer.calls.map((call, at) => ({ ...call, input: parsed(written[at] || "{}") })) };
}

const messagesEnds: Record<string, Answer["end"]> = {
  end_turn: "stop",
  max_tokens: "length",
  tool_use: "tool_calls",
  refusal: "content_filter",
};

const messagesWire: Wire = {
  path: "/v1/messages",
  idPrefix: "msg_",
  body: (ask) => ({
    model,
    max_tokens: 500,
    system: ask.instructions,
    messages: [{ role: "user", content: [{ type: "text", text: ask.question }] }],
    tools: ask.tools?.map((name) => ({ name, input_schema: schemaOf(name) })),
    ...(ask.everything ? { stop_sequences: ["END"] } : {}),
  }),
  readFrames(frames) {
    const answer: Answer = { reasoning: "", text: "", calls: [], end: "none" };
    const written: string[] = [];
    for (const { data } of frames) {
      const event = parsed(data);
      const { delta, content_block: block } = event;
      if (textOf(event.type) === "error") answer.end = "failed";
      answer.text += textOf(delta?.text);
      answer.reasoning += textOf(delta?.thinking);
      if (textOf(block?.type) === "tool_use")
        answer.calls.push({ id: textOf(block?.id), name: textOf(block?.name), input: {} });
      const at = answer.calls.length - 1;
      if (delta?.partial_json) written[at] = (written[at] ?? "") + textOf(delta.partial_json);
      if (delta?.stop_reason) answer.end = messagesEnds[textOf(delta.stop_reason)] ?? "none";
    }
    return withInputs(answer, written);
  },
  readReply(reply) {
    const of = (type: string) => listOf(reply.content).filter((block) => textOf(block.type) === type);
    return {
      reasoning: of("thinking")
        .map((block) => textOf(block.thinking))
        .join(""),
      text: of("text")
        .map((block) => textOf(block.text))
        .join(""),
      calls: of("tool_use").map(({ id, name, input }) => ({ id: textOf(id), name: textOf(name), input: input ?? {} })),
      end: messagesEnds[textOf(reply.stop_reason)] ?? "none",
    };
  },
};

const responsesWire: Wire = {
  path: "/v1/responses",
  idPrefix: "resp_",
  body: (ask) => ({
    model,
    instructions: ask.instructions,
    input: [{ role: "user", content: [{ type: "input_text", text: ask.question }] }],
    tools: ask.tools?.map((name) => ({ type: "function", name, parameters: schemaOf(name) })),
    ...(ask.everything ? { reasoning: { summary: "auto" } } : {}),
  }),
  /** Reads frames as Codex does: only whole items and the end. */
  readFrames(frames) {
    const events = frames.filter(({ data }) => data !== "[DONE]").map(({ data }) => parsed(data));
    const last = events.at(-1);
    const done = events.filter((event) => textOf(event.type) === "response.output_item.done");
    const read = responsesWire.readReply({
      ...last?.response,
      output: done.map((event) => event.item),
    } as unknown as Json);
    return { ...read, calls: read.end === "failed" ? [] : read.calls };
  },
  readReply(reply) {
    const of = (type: string) => listOf(reply.output).filter((item) => textOf(item.type) === type);
    const said = (items: Json[]) =>
      items
        .flatMap((item) => listOf(item.content))
        .map((part) => textOf(part.text))
        .join("");
    const calls = of("function_call").map((item) => ({
      id: textOf(item.call_id),
      name: textOf(item.name),
      input: parsed(textOf(item.arguments)),
    }));
    return {
      reasoning: said(of("reasoning")),
      text: said(of("message")),
      calls,
      end: responsesEnd(reply, calls.length > 0),
    };
  },
};

function responsesEnd(response: Json, called: boolean): Answer["end"] {
  const status = textOf(response.status);
  if (status === "failed") return "failed";
  if (status === "completed") return called ? "tool_calls" : "stop";
  const reason = textOf(response.incomplete_details?.reason);
  return reason === "max_output_tokens" ? "length" : reason === "content_filter" ? "content_filter" : "none";
}

export const wires = { chat: chatWire, messages: messagesWire, responses: responsesWire } satisfies Partial<
  Record<Named[keyof Named], Wire>
>;
export const clientNames = Object.keys(wires) as ClientName[];

export const callers: Record<ClientName, Caller> = {
  chat: caller(openaiChatCaller, (body) => validateChatRequest(body, []), chatWire),
  messages: caller(anthropicMessagesCaller(), validateMessagesRequest, messagesWire),
  responses: caller(openaiResponsesCaller, validateResponsesRequest, responsesWire),
};

export { type Engine, engines } from "./engines.ts";
