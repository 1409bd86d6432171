/**
 * Turns an engine's chunks into events that follow the grammar of inference/event.ts. Engines deviate from the protocol
 * (docs/design/protocols.md, Engine quirks). An answer ends with a finish_reason or with [DONE]; any other answer was
 * cut off.
 */
import type { InferenceEvent, PartHead, StopReason, TokenLogprob } from "../../inference/event.ts";
import type { Fault } from "../../inference/fault.ts";
import { promptTokens, type Usage } from "../../inference/usage.ts";
import { assertFewParts, BaseAnswerDecoder, wholeReply } from "../answer.ts";
import type { AnswerContext, EngineDecoder, ResponseIdentity } from "../codec.ts";
import type { Dialect } from "../dialect.ts";
import { isObject, type JsonObject, textOf } from "../json.ts";
import { logprobsOf, ofText, usageReported } from "../openai-usage.ts";
import { answerCutShort, malformedAnswer, statusWithin } from "../refusal.ts";
import { CarriedOut } from "./carried-back.ts";
import type { ChatUsage } from "./contract.ts";
import { decodeFault } from "./fault.ts";
import { type ToolCallAssembly, toolCallAssembly } from "./tool-calls.ts";

export function streamDecoder(identity: ResponseIdentity, context: AnswerContext = {}): EngineDecoder {
  return new AnswerDecoder(identity, context);
}

/** Decodes a reply that was not streamed. It is like one chunk, with a `message` where chunks have a `delta`. */
export function decodeReply(reply: unknown, identity: ResponseIdentity, context: AnswerContext = {}): InferenceEvent[] {
  const answer = new AnswerDecoder(identity, context);
  if (!isObject(reply)) return answer.fail(malformedAnswer(new Error("a reply that is no object")));
  return wholeReply([...answer.take(reply), ...answer.replied()]);
}

type TextKind = "text" | "refusal" | "reasoning";

class AnswerDecoder extends BaseAnswerDecoder {
  readonly #carried: CarriedOut;
  /** Assembles the tool calls; null until the first tool call. */
  #tools: ToolCallAssembly | null = null;
  #partCount = 0;
  /** The open text or reasoning part. Calls stay open beside it, because their fragments interleave. */
  #open: { index: number; kind: TextKind } | null = null;
  #stopSequence: string | undefined;
  #toolCalls = 0;
  /**
   * Log probabilities of tokens whose text has not arrived yet: the first bytes of a character, or a tag that may begin
   * reasoning.
   */
  #early: TokenLogprob[] = [];

  constructor(identity: ResponseIdentity, { dialect, model = identity.model }: AnswerContext) {
    super(identity, dialect);
    this.#carried = new CarriedOut(this.dialect, model);
  }

  take(chunk: JsonObject, name = ""): InferenceEvent[] {
    const failure = failureOf(chunk, this.dialect, name);
    if (failure) return this.fail(failure);
    const events = this.started();
    const first = Array.isArray(chunk.choices)
      ? chunk.choices.find((value) => isObject(value) && !value.index)
      : undefined;
    if (isObject(first)) {
      this.#choice(events, first);
      if (this.reason.isFailed) events.push(...this.fail(answerCutShort("finish_reason")));
    }
    if (this.over) return events;
    const report = usageReported(chunk, this.dialect.usage, "chat");
    if (report) events.push({ type: "usage", ...report });
    return events;
  }

  protected ended(): InferenceEvent[] {
    return this.#end(false);
  }

  /** `[DONE]` ends an answer even if the engine gave no reason for its end, unless a call is incomplete. */
  protected done(): InferenceEvent[] {
    return this.#end(this.#isNamed || (this.#partCount > 0 && !this.#tools?.unfinished));
  }

  /** Ends a reply that was not streamed. */
  replied(): InferenceEvent[] {
    return this.#end(this.#isNamed);
  }

  /**
   * Whether the engine gave a finish reason that this dialect does not know. Such a reason does not end an answer by
   * itself.
   */
  get #isNamed(): boolean {
    return this.reason.unknown !== undefined;
  }

  /** Ends the answer. `isWhole`: the answer counts as complete even without a finish reason that is known. */
  #end(isWhole: boolean): InferenceEvent[] {
    if (this.over) return [];
    if (this.#tools?.unnamed) return this.fail(malformedAnswer(new Error("a tool call without a name")));
    if (this.reason.known === null && !isWhole) return this.fail(answerCutShort("finish_reason"));
    const events: InferenceEvent[] = [];
    this.#closeText(events);
    for (const signature of [this.#carried.ofMessage(), ...this.#carried.late]) this.#sign(events, signature);
    const reason = this.#corrected(this.reason.known ?? "stop");
    for (const { partIndex: index, isWritten, custom } of this.#tools?.started ?? []) {
      // Some engines write no arguments for a tool without parameters. Clients parse the arguments as JSON.
      if (!isWritten && !custom && reason === "tool_calls") events.push({ type: "part-delta", index, delta: "{}" });
      events.push({ type: "part-end", index });
    }
    events.push(this.ends(reason, this.#stopSequence));
    return events;
  }

  #write(events: InferenceEvent[], kind: TextKind, delta: string, logprobs?: TokenLogprob[]): void {
    if (delta === "" && !logprobs) return;
    if (this.#open?.kind !== kind) {
      this.#closeText(events);
      this.#open = { index: this.#newIndex(), kind };
      events.push({ type: "part-start", index: this.#open.index, part: { kind } });
    }
    events.push({ type: "part-delta", index: this.#open.index, delta, ...(logprobs ? { logprobs } : {}) });
  }

  /**
   * Writes text. Log probabilities of reasoning, calls and markers, which some engines send, are ignored: they belong
   * to no text.
   */
  #writeText(events: InferenceEvent[], text: string, logprobs: TokenLogprob[], isText: boolean): void {
    if (!isText) this.#early = [];
    else if (logprobs.length > 0) this.#early.push(...logprobs);
    if (text === "") return;
    this.#write(events, "text", text, this.#early.length > 0 ? ofText(this.#early, text) : undefined);
    this.#early = [];
  }

  #newIndex(): number {
    assertFewParts(this.#partCount + 1);
    return this.#partCount++;
  }

  #closeText(events: InferenceEvent[]): void {
    const open = this.#open;
    this.#open = null;
    if (!open) return;
    const signature = open.kind === "reasoning" ? this.#carried.ofMessage() : undefined;
    events.push({ type: "part-end", index: open.index, ...(signature === undefined ? {} : { signature }) });
  }

  /** Adds a reasoning part without text, whose signature holds the engine's opaque value. */
  #sign(events: InferenceEvent[], signature: string | undefined): void {
    if (signature === undefined) return;
    const index = this.#newIndex();
    events.push({ type: "part-start", index, part: { kind: "reasoning" } }, { type: "part-end", index, signature });
  }

  #choice(events: InferenceEvent[], value: JsonObject): void {
    const delta = isObject(value.delta) ? value.delta : isObject(value.message) ? value.message : {};
    this.#carried.take(delta);
    const thought = this.#thoughtIn(delta);
    this.#write(events, "reasoning", thought);
    const calls: unknown[] = Array.isArray(delta.tool_calls) ? delta.tool_calls : [];
    let logprobs = logprobsOf(isObject(value.logprobs) ? value.logprobs.content : undefined);
    for (const { kind, text } of contentOf(delta.content)) {
      if (kind === "reasoning") this.#write(events, kind, text);
      else {
        this.#writeText(events, text, logprobs, text !== "" || (thought === "" && calls.length === 0));
        logprobs = none;
      }
    }
    this.#write(events, "refusal", textOf(delta.refusal));
    calls.forEach((fragment, position) => {
      if (isObject(fragment)) this.#call(events, fragment, position, calls.length === 1);
    });
    this.reason.take(value.finish_reason);
    for (const named of [value.stop_reason, value.matched_stop])
      if (typeof named === "string") this.#stopSequence = named;
  }

  #thoughtIn(message: JsonObject): string {
    for (const field of this.dialect.reasoning.in) {
      const thought = message[field];
      if (typeof thought === "string" && thought !== "") return thought;
    }
    return "";
  }

  #call(events: InferenceEvent[], fragment: JsonObject, position: number, isAlone: boolean): void {
    this.#tools ??= toolCallAssembly(this.identity.responseId);
    const steps = this.#tools.push(fragment, position, isAlone);
    if (steps[0]?.type !== "start") {
      const begun = steps[0]?.call ?? this.#tools.started.at(-1);
      if (begun) this.#carried.takeLate(fragment, begun.callId);
    }
    for (const step of steps) {
      if (step.type === "start") {
        this.#closeText(events);
        this.#sign(events, this.#carried.ofMessage());
        this.#sign(events, this.#carried.ofCall(fragment, step.call.callId));
        step.call.partIndex = this.#newIndex();
        this.#toolCalls += 1;
        const { callId, toolName, custom, partIndex: index } = step.call;
        const part: PartHead = { kind: "tool-call", callId, toolName, ...(custom ? { custom } : {}) };
        events.push({ type: "part-start", index, part });
      } else {
        events.push({ type: "part-delta", index: step.call.partIndex, delta: step.text });
      }
    }
  }

  /** Corrects the reason of engines that give `stop` after tool calls, or `tool_calls` without any tool call. */
  #corrected(reason: StopReason): StopReason {
    if (reason === "stop" && this.#toolCalls > 0) return "tool_calls";
    if (reason === "tool_calls" && this.#toolCalls === 0) return "stop";
    return reason;
  }
}

const none: TokenLogprob[] = [];

/** The texts in `content`, which is a string, or for some engines a list of parts, which may include reasoning. */
function contentOf(content: unknown): { kind: "text" | "reasoning"; text: string }[] {
  if (!Array.isArray(content)) return [{ kind: "text", text: textOf(content) }];
  return content.filter(isObject).map((part) => {
    if (part.type !== "thinking") return { kind: "text", text: textOf(part.text) };
    const inner = Array.isArray(part.thinking) ? part.thinking.filter(isObject).map((piece) => textOf(piece.text)) : [];
    return { kind: "reasoning", text: textOf(part.thinking) + inner.join("") };
  });
}

/**
 * The fault of a chunk that is an error; null for other chunks. Engines write errors in several forms. `name`: the name
 * of the chunk's event.
 */
function failureOf(chunk: JsonObject, dialect: Dialect, name: string): Fault | null {
  const isError = chunk.object === "error" || (name === "error" && !chunk.choices);
  const error = chunk.error ?? (isError ? chunk : undefined) ?? (chunk.choices ? undefined : chunk.detail);
  if (error === undefined || error === null || error === false) return null;
  return decodeFault(isObject(error) ? statusWithin(error) : 500, chunk, dialect);
}

/** Writes `usage`, whose prompt tokens include cached ones, unlike those of `Usage`. */
export function encodeUsage(usage: Usage): ChatUsage {
  const prompt = promptTokens(usage);
  return {
    prompt_tokens: prompt,
    completion_tokens: usage.outputTokens,
    total_tokens: prompt + usage.outputTokens,
    prompt_tokens_details: {
      cached_tokens: usage.cachedInputTokens,
      ...(usage.cacheWriteTokens > 0 ? { cache_write_tokens: usage.cacheWriteTokens } : {}),
    },
    completion_tokens_details: { reasoning_tokens: usage.reasoningTokens },
  };
}
