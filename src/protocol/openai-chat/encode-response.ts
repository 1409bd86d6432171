/** The centre → what chat clients read: chunks that end with one [DONE], or one completion. */
import type { InferenceEvent, PartDelta, PartHead, StopReason, TokenLogprob } from "../../inference/event.ts";
import type { Result, ResultPart } from "../../inference/result.ts";
import { noUsage, type Usage } from "../../inference/usage.ts";
import { comment } from "../../sse/encode.ts";
import type { SseMessage } from "../../sse/message.ts";
import type { StreamContext, StreamEncoder } from "../codec.ts";
import { CustomInput, customInputOf } from "../custom-tool.ts";
import { type AroundDelta, aroundDelta } from "../delta-frame.ts";
import { PartQueue } from "../part-queue.ts";
import type {
  ChatChoice,
  ChatCompletion,
  ChatCompletionRequest,
  ChatDelta,
  ChatToolCall,
  ChatToolCallDelta,
} from "./contract.ts";
import { encodeFault } from "./fault.ts";
import { customNames } from "./tools.ts";
import { encodeUsage } from "./usage.ts";

export function streamEncoder(wire: ChatCompletionRequest, { requestId }: StreamContext): StreamEncoder {
  return new ChatEncoder(wire, requestId);
}

/** A class: docs/design/runtime.md, Bun as a server. */
class ChatEncoder implements StreamEncoder {
  readonly #wire: ChatCompletionRequest;
  readonly #requestId: string;
  readonly #wantsUsage: boolean;
  /** Everything before `choices`: the same bytes in every chunk of the stream. */
  #head = "";
  #usage: Usage = noUsage;
  /** Of the part that is told; calls are counted in order of appearance. */
  #kind: PartHead["kind"] = "text";
  #calls = 0;
  /** A call of a custom tool, and what reads the arguments that an engine wrote around its plain text. */
  #isCustom = false;
  #input: CustomInput | null = null;
  readonly #custom: ReadonlySet<string>;
  #around: AroundDelta = { before: "", after: "" };
  readonly #parts = new PartQueue();

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
    return this.#parts.push(event).flatMap((next) => this.#said(next));
  }

  end(): SseMessage[] {
    return [];
  }

  heartbeat(): string {
    return waiting;
  }

  #said(event: InferenceEvent): SseMessage[] {
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
        const asked = this.#kind === "text" && logprobs ? asAsked(logprobs, this.#wire) : undefined;
        return [this.#chunk(this.#deltaOf(delta), asked)];
      }
      case "part-end":
        return this.#input ? this.#plain(this.#input.end()) : [];
      case "usage":
        this.#usage = event.usage;
        return [];
      case "response-end": {
        const matched = JSON.stringify(matchedStop(event, this.#wire)).slice(1, -1);
        const last = [this.#chunk({}, undefined, event.reason, matched && `,${matched}`)];
        if (this.#wantsUsage)
          last.push({ data: `${this.#head}[],"usage":${JSON.stringify(encodeUsage(this.#usage))}}` });
        return [...last, done];
      }
      case "response-failed":
        return [{ data: JSON.stringify(encodeFault(event.fault, this.#requestId)) }, done];
    }
  }

  #called({ callId: id, toolName: name, custom }: Extract<PartHead, { kind: "tool-call" }>): SseMessage[] {
    this.#calls += 1;
    this.#isCustom = custom === true || this.#custom.has(name);
    this.#input = this.#isCustom && !custom ? new CustomInput() : null;
    this.#around = aroundDelta(this.#chunk(this.#deltaOf("")));
    const index = this.#calls - 1;
    const call: ChatToolCallDelta = this.#isCustom
      ? { index, id, type: "custom", custom: { name, input: "" } }
      : { index, id, type: "function", function: { name, arguments: "" } };
    return [this.#chunk({ tool_calls: [call] })];
  }

  #plain(text: string): SseMessage[] {
    return text === "" ? [] : [this.#chunk(this.#deltaOf(text))];
  }

  #chunk(delta: ChatDelta, logprobs?: TokenLogprob[], finish: StopReason | null = null, more = ""): SseMessage {
    const told = logprobs ? JSON.stringify({ content: logprobs, refusal: null }) : "null";
    const reason = finish ? `"${finish}"` : "null";
    const choice = `{"index":0,"delta":${JSON.stringify(delta)},"logprobs":${told},"finish_reason":${reason}${more}}`;
    return { data: `${this.#head}[${choice}]${this.#wantsUsage ? `,"usage":null}` : "}"}` };
  }

  #deltaOf(delta: string): ChatDelta {
    switch (this.#kind) {
      case "tool-call":
        return { tool_calls: [{ index: this.#calls - 1, ...this.#fragment(delta) }] };
      case "reasoning":
        return { reasoning_content: delta };
      case "refusal":
        return { refusal: delta };
      case "text":
        return { content: delta };
    }
  }

  #fragment(delta: string): Omit<ChatToolCallDelta, "index"> {
    return this.#isCustom ? { custom: { input: delta } } : { function: { arguments: delta } };
  }
}

const done: SseMessage = { data: "[DONE]" };
const waiting = comment("waiting for the model");

/** The stop string that ended the answer, in vLLM's word for it. Engines stop at some of their own, which no caller asked for. */
function matchedStop(
  { reason, stopSequence }: Pick<Result, "reason" | "stopSequence">,
  { stop }: Pick<ChatCompletionRequest, "stop">,
): Pick<ChatChoice, "stop_reason"> {
  const asked = typeof stop === "string" ? [stop] : (stop ?? []);
  if (reason !== "stop" || stopSequence === undefined || !asked.includes(stopSequence)) return {};
  return { stop_reason: stopSequence };
}

/** Engines give alternatives by their own default where none were asked for (llama.cpp: 20), and some without a question. */
function asAsked(logprobs: TokenLogprob[], wire: ChatCompletionRequest): TokenLogprob[] | undefined {
  if (!wire.logprobs) return undefined;
  const most = wire.top_logprobs ?? 0;
  return logprobs.map((token) => ({ ...token, top_logprobs: token.top_logprobs.slice(0, most) }));
}

export function encodeResponse(result: Result, wire: ChatCompletionRequest): ChatCompletion {
  const { text, refusal, reasoning, toolCalls, logprobs } = saidIn(result.parts, customNames(wire));
  const told = logprobs.length > 0 ? asAsked(logprobs, wire) : undefined;
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
          ...(reasoning === null ? {} : { reasoning_content: reasoning }),
          ...(toolCalls.length > 0 ? { tool_calls: toolCalls } : {}),
        },
        logprobs: told ? { content: told, refusal: null } : null,
        finish_reason: result.reason,
        ...matchedStop(result, wire),
      },
    ],
    usage: encodeUsage(result.usage),
  };
}

/** Texts are null where there is no part of their kind. */
interface Said {
  text: string | null;
  refusal: string | null;
  reasoning: string | null;
  toolCalls: ChatToolCall[];
  logprobs: TokenLogprob[];
}

function saidIn(parts: readonly ResultPart[], custom: ReadonlySet<string>): Said {
  const said: Said = { text: null, refusal: null, reasoning: null, toolCalls: [], logprobs: [] };
  for (const { head, text, logprobs } of parts) {
    if (head.kind === "tool-call") {
      said.toolCalls.push(callOf(head, text, custom));
    } else {
      said[head.kind] = (said[head.kind] ?? "") + text;
      if (head.kind === "text" && logprobs) said.logprobs = said.logprobs.concat(logprobs);
    }
  }
  return said;
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
