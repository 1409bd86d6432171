/** Writes the answer for chat clients: chunks that end with one [DONE], or one completion. */
import type { InferenceEvent, PartDelta, PartHead, StopReason, TokenLogprob } from "../../inference/event.ts";
import type { Fault } from "../../inference/fault.ts";
import type { Result, ResultPart } from "../../inference/result.ts";
import { noUsage, type Usage } from "../../inference/usage.ts";
import { comment, type SseMessage } from "../../sse/decode.ts";
import { carriedIn } from "../carried.ts";
import type { StreamContext, StreamEncoder } from "../codec.ts";
import { CustomInput, customInputOf } from "../custom-tool.ts";
import type { JsonObject } from "../json.ts";
import { type AroundDelta, aroundDelta, PartQueue } from "../part-queue.ts";
import { clientFields } from "./carried-back.ts";
import type {
  ChatChoice,
  ChatCompletion,
  ChatCompletionRequest,
  ChatDelta,
  ChatToolCall,
  ChatToolCallDelta,
} from "./contract.ts";
import { customNames } from "./decode-request.ts";
import { encodeUsage } from "./decode-stream.ts";
import { encodeFault } from "./fault.ts";

export function streamEncoder(wire: ChatCompletionRequest, { requestId }: StreamContext): StreamEncoder {
  return new ChatEncoder(wire, requestId);
}

/** A class, because closures would be made again for each answer (docs/design/runtime.md, Memory). */
class ChatEncoder implements StreamEncoder {
  readonly #wire: ChatCompletionRequest;
  readonly #requestId: string;
  readonly #wantsUsage: boolean;
  /** The bytes before `choices`, which are the same in every chunk of the stream. */
  #head = "";
  #usage: Usage = noUsage;
  /** The kind of the open part. Calls are numbered in order of appearance. */
  #kind: PartHead["kind"] = "text";
  #calls = 0;
  /** Whether the open call is of a custom tool; `#input` extracts its plain text if the engine wraps it in JSON. */
  #isCustom = false;
  #input: CustomInput | null = null;
  readonly #custom: ReadonlySet<string>;
  #around: AroundDelta = { before: "", after: "" };
  readonly #parts = new PartQueue();
  /**
   * The opaque values (carried.ts) of calls that have not begun. The key is the id of the call; the value is the fields
   * to write.
   */
  readonly #ofCalls = new Map<string, JsonObject>();
  /** The ids of the calls that have begun, in order. */
  readonly #begun: string[] = [];

  constructor(wire: ChatCompletionRequest, requestId: string) {
    this.#wire = wire;
    this.#requestId = requestId;
    this.#wantsUsage = wire.stream_options?.include_usage === true;
    this.#custom = customNames(wire);
  }

  frame(event: PartDelta): string | null {
    if (event.logprobs || this.#input || !this.#parts.takes(event)) return null;
    return this.#around.before + JSON.stringify(event.delta) + this.#around.after;
  }

  push(event: InferenceEvent): SseMessage[] {
    return this.#parts.push(event).flatMap((next) => this.#framesOf(next));
  }

  end(): SseMessage[] {
    return [];
  }

  heartbeat(): string {
    return waiting;
  }

  #framesOf(event: InferenceEvent): SseMessage[] {
    switch (event.type) {
      case "response-start": {
        const { responseId: id, createdAtSeconds: created, model } = event;
        this.#head = `${JSON.stringify({ id, object: "chat.completion.chunk", created, model }).slice(0, -1)},"choices":`;
        return [this.#chunk({ role: "assistant", content: "" })];
      }
      case "part-start": {
        const { part } = event;
        this.#kind = part.kind;
        this.#input = null;
        if (part.kind === "tool-call") return this.#called(part);
        this.#around = aroundDelta(this.#chunk(this.#deltaOf("")));
        return [];
      }
      case "part-delta": {
        const { delta, logprobs } = event;
        if (this.#input) return this.#plain(this.#input.push(delta));
        const requested = this.#kind === "text" && logprobs ? asRequested(logprobs, this.#wire) : undefined;
        return [this.#chunk(this.#deltaOf(delta), requested)];
      }
      case "part-end":
        if (this.#kind === "reasoning") return this.#signed(event.signature);
        return this.#input ? this.#plain(this.#input.end()) : [];
      case "usage":
        this.#usage = event.usage;
        return [];
      case "passed":
        return [];
      case "response-end": {
        const matched = JSON.stringify(matchedStop(event, this.#wire)).slice(1, -1);
        const last = [this.#chunk({}, undefined, event.reason, matched && `,${matched}`)];
        if (this.#wantsUsage)
          last.push({ data: `${this.#head}[],"usage":${JSON.stringify(encodeUsage(this.#usage))}}` });
        return [...last, done];
      }
      case "response-failed":
        return failure(event.fault, this.#requestId);
    }
  }

  #called({ callId: id, toolName: name, custom }: Extract<PartHead, { kind: "tool-call" }>): SseMessage[] {
    this.#calls += 1;
    this.#begun.push(id);
    this.#isCustom = custom === true || this.#custom.has(name);
    this.#input = this.#isCustom && !custom ? new CustomInput() : null;
    this.#around = aroundDelta(this.#chunk(this.#deltaOf("")));
    const index = this.#calls - 1;
    const call: ChatToolCallDelta = this.#isCustom
      ? { index, id, type: "custom", custom: { name, input: "" } }
      : { index, id, type: "function", function: { name, arguments: "" } };
    return [this.#chunk({ tool_calls: [{ ...call, ...this.#ofCalls.get(id) }] })];
  }

  /** Writes an opaque value (carried.ts). The value of a call waits until the call begins. */
  #signed(signature: string | undefined): SseMessage[] {
    const carried = carriedIn(signature);
    if (carried === null) return [];
    const fields = clientFields(carried, signature!);
    if (carried.callId === undefined) return [this.#chunk(fields)];
    const index = this.#begun.indexOf(carried.callId);
    if (index >= 0) return [this.#chunk({ tool_calls: [{ index, ...fields }] })];
    this.#ofCalls.set(carried.callId, fields);
    return [];
  }

  #plain(text: string): SseMessage[] {
    return text === "" ? [] : [this.#chunk(this.#deltaOf(text))];
  }

  #chunk(delta: ChatDelta, logprobs?: TokenLogprob[], finish: StopReason | null = null, more = ""): SseMessage {
    const content = logprobs ? JSON.stringify({ content: logprobs, refusal: null }) : "null";
    const reason = finish ? `"${finish}"` : "null";
    const choice = `{"index":0,"delta":${JSON.stringify(delta)},"logprobs":${content},"finish_reason":${reason}${more}}`;
    return { data: `${this.#head}[${choice}]${this.#wantsUsage ? `,"usage":null}` : "}"}` };
  }

  #deltaOf(delta: string): ChatDelta {
    switch (this.#kind) {
      case "tool-call": {
        const written = this.#isCustom ? { custom: { input: delta } } : { function: { arguments: delta } };
        return { tool_calls: [{ index: this.#calls - 1, ...written }] };
      }
      case "reasoning":
        return { reasoning_content: delta };
      case "refusal":
        return { refusal: delta };
      case "text":
        return { content: delta };
    }
  }
}

const done: SseMessage = { data: "[DONE]" };

export function failure(fault: Fault, requestId: string): SseMessage[] {
  return [{ data: JSON.stringify(encodeFault(fault, requestId)) }, done];
}

const waiting = comment("waiting for the model");

/**
 * The caller's stop text that ended the answer, for a field of vLLM. Engines also stop at texts of their own, which are
 * not reported.
 */
function matchedStop(
  { reason, stopSequence }: Pick<Result, "reason" | "stopSequence">,
  { stop }: Pick<ChatCompletionRequest, "stop">,
): Pick<ChatChoice, "stop_reason"> {
  const requested = typeof stop === "string" ? [stop] : (stop ?? []);
  if (reason !== "stop" || stopSequence === undefined || !requested.includes(stopSequence)) return {};
  return { stop_reason: stopSequence };
}

/**
 * The log probabilities as the caller asked for them. Some engines send log probabilities unasked, or more alternatives
 * than were asked for (llama.cpp: 20).
 */
function asRequested(logprobs: TokenLogprob[], wire: ChatCompletionRequest): TokenLogprob[] | undefined {
  if (!wire.logprobs) return undefined;
  const most = wire.top_logprobs ?? 0;
  return logprobs.map((token) => ({ ...token, top_logprobs: token.top_logprobs.slice(0, most) }));
}

export function encodeResponse(result: Result, wire: ChatCompletionRequest): ChatCompletion {
  const { text, refusal, reasoning, toolCalls, logprobs, fields } = contentOf(result.parts, customNames(wire));
  const requested = logprobs.length > 0 ? asRequested(logprobs, wire) : undefined;
  return {
    id: result.responseId,
    object: "chat.completion",
    created: result.createdAtSeconds,
    model: result.model,
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: text ?? (toolCalls.length > 0 || refusal !== null ? null : ""),
          refusal,
          ...(reasoning ? { reasoning_content: reasoning } : {}),
          ...fields,
          ...(toolCalls.length > 0 ? { tool_calls: toolCalls } : {}),
        },
        logprobs: requested ? { content: requested, refusal: null } : null,
        finish_reason: result.reason,
        ...matchedStop(result, wire),
      },
    ],
    usage: encodeUsage(result.usage),
  };
}

/** The parts of an answer by kind. A text is null if there is no part of that kind. */
interface Content {
  text: string | null;
  refusal: string | null;
  reasoning: string | null;
  toolCalls: ChatToolCall[];
  logprobs: TokenLogprob[];
  /** The fields of the message that hold opaque values (carried.ts). */
  fields: JsonObject;
}

function contentOf(parts: readonly ResultPart[], custom: ReadonlySet<string>): Content {
  const content: Content = { text: null, refusal: null, reasoning: null, toolCalls: [], logprobs: [], fields: {} };
  const ofCalls = new Map<string, JsonObject>();
  for (const { head, signature } of parts) {
    const carried = head.kind === "reasoning" ? carriedIn(signature) : null;
    if (carried?.callId !== undefined) ofCalls.set(carried.callId, clientFields(carried, signature!));
    else if (carried) content.fields = { ...content.fields, ...clientFields(carried, signature!) };
  }
  for (const { head, text, logprobs } of parts) {
    if (head.kind === "tool-call") {
      content.toolCalls.push({ ...callOf(head, text, custom), ...ofCalls.get(head.callId) });
    } else {
      content[head.kind] = (content[head.kind] ?? "") + text;
      if (head.kind === "text" && logprobs) content.logprobs = content.logprobs.concat(logprobs);
    }
  }
  return content;
}

function callOf(
  { callId: id, toolName: name, custom }: Extract<PartHead, { kind: "tool-call" }>,
  text: string,
  customs: ReadonlySet<string>,
): ChatToolCall {
  if (custom) return { id, type: "custom", custom: { name, input: text } };
  if (customs.has(name)) return { id, type: "custom", custom: { name, input: customInputOf(text) } };
  return { id, type: "function", function: { name, arguments: text } };
}
