/**
 * An engine's chunks → events. Engines bend the protocol (docs/design/protocols.md, Engine quirks); whatever arrives,
 * what leaves is grammatical. An answer has ended when it named a finish_reason or said [DONE]; anything else was cut.
 */
import type { InferenceEvent, StopReason, TokenLogprob } from "../../inference/event.ts";
import type { Fault } from "../../inference/fault.ts";
import type { SseMessage } from "../../sse/message.ts";
import type { ResponseIdentity, Transducer } from "../codec.ts";
import { entryOf, isObject, type JsonObject, textOf } from "../json.ts";
import { answerCutShort, malformedAnswer } from "../refusal.ts";
import { decodeFault } from "./fault.ts";
import { toolCallAssembly } from "./tool-calls.ts";
import { decodeUsage } from "./usage.ts";

export function streamDecoder(identity: ResponseIdentity): Transducer<SseMessage, InferenceEvent> {
  const answer = answerDecoder(identity);
  return {
    push({ data }) {
      const text = data.trim();
      if (text === "" || answer.over) return [];
      if (text === "[DONE]") return answer.end(true);
      let chunk: unknown;
      try {
        chunk = JSON.parse(text);
      } catch (cause) {
        return answer.fail(malformedAnswer(cause));
      }
      return answer.push(chunk);
    },
    end: () => answer.end(false),
  };
}

/** A whole reply is one chunk that has a `message` where chunks have a `delta`. */
export function decodeReply(reply: unknown, identity: ResponseIdentity): InferenceEvent[] {
  const answer = answerDecoder(identity);
  return [...answer.push(reply), ...answer.end(false)];
}

function answerDecoder(identity: ResponseIdentity) {
  const tools = toolCallAssembly(identity.responseId);
  let started = false;
  let over = false;
  let partCount = 0;
  /** The text-like part that is open; tool calls stay open beside it, because their fragments interleave. */
  let open: { index: number; kind: "text" | "refusal" | "reasoning" } | null = null;
  let reason: StopReason | null = null;
  let stopSequence: string | undefined;
  let toolCalls = 0;
  /** Of tokens whose text has not come yet: a character's first bytes, a tag that may open reasoning. */
  let early: TokenLogprob[] = [];

  function say(
    events: InferenceEvent[],
    kind: "text" | "refusal" | "reasoning",
    delta: string,
    logprobs?: TokenLogprob[],
  ) {
    if (delta === "" && !logprobs) return;
    if (open?.kind !== kind) {
      closeText(events);
      open = { index: partCount++, kind };
      events.push({ type: "part-start", index: open.index, part: { kind } });
    }
    events.push({ type: "part-delta", index: open.index, delta, ...(logprobs ? { logprobs } : {}) });
  }

  /** Some engines send the probabilities of reasoning and of calls too: they are no text's, and open none. */
  function sayText(events: InferenceEvent[], text: string, logprobs: TokenLogprob[], isText: boolean) {
    early = isText ? [...early, ...logprobs] : [];
    if (text === "" && (open?.kind !== "text" || early.length === 0)) return;
    say(events, "text", text, early.length > 0 ? early : undefined);
    early = [];
  }

  function closeText(events: InferenceEvent[]) {
    if (open) events.push({ type: "part-end", index: open.index });
    open = null;
  }

  function choice(events: InferenceEvent[], value: JsonObject) {
    const delta = isObject(value.delta) ? value.delta : isObject(value.message) ? value.message : {};
    const thought = textOf(delta.reasoning_content) || textOf(delta.reasoning);
    say(events, "reasoning", thought);
    const calls = Array.isArray(delta.tool_calls) ? delta.tool_calls : [];
    let logprobs = logprobsOf(value);
    for (const { kind, text } of contentOf(delta.content)) {
      if (kind === "reasoning") say(events, kind, text);
      else sayText(events, text, logprobs, text !== "" || (thought === "" && calls.length === 0));
      logprobs = [];
    }
    say(events, "refusal", textOf(delta.refusal));
    calls.forEach((fragment, position) => {
      if (!isObject(fragment)) return;
      for (const step of tools.push(fragment, position)) {
        if (step.type === "start") {
          closeText(events);
          step.call.partIndex = partCount++;
          toolCalls += 1;
          const { callId, toolName, partIndex: index } = step.call;
          events.push({ type: "part-start", index, part: { kind: "tool-call", callId, toolName } });
        } else {
          events.push({ type: "part-delta", index: step.call.partIndex, delta: step.text });
        }
      }
    });
    if (typeof value.finish_reason === "string") reason = entryOf(stopReasons, value.finish_reason) ?? "stop";
    for (const named of [value.stop_reason, value.matched_stop]) if (typeof named === "string") stopSequence = named;
  }

  return {
    get over() {
      return over;
    },

    push(chunk: unknown): InferenceEvent[] {
      if (!isObject(chunk)) return this.fail(malformedAnswer(new Error("a chunk that is no object")));
      const failure = failureOf(chunk);
      if (failure) return this.fail(failure);
      const events: InferenceEvent[] = [];
      if (!started) {
        started = true;
        events.push({ type: "response-start", ...identity });
      }
      const first = Array.isArray(chunk.choices)
        ? chunk.choices.find((value) => isObject(value) && !value.index)
        : undefined;
      if (isObject(first)) {
        choice(events, first);
        if (brokenOff.has(first.finish_reason)) events.push(...this.fail(answerCutShort("finish_reason")));
      }
      if (over) return events;
      const report = decodeUsage(chunk.usage);
      if (report) events.push({ type: "usage", ...report });
      return events;
    },

    /** `done`: the engine said [DONE], which ends an answer even where it forgot the reason. */
    end(done: boolean): InferenceEvent[] {
      if (over) return [];
      if (tools.unnamed) return this.fail(malformedAnswer(new Error("a tool call without a name")));
      if (reason === null && !(done && partCount > 0)) {
        return this.fail(answerCutShort("finish_reason"));
      }
      over = true;
      const events: InferenceEvent[] = [];
      closeText(events);
      for (const call of tools.calls) events.push({ type: "part-end", index: call.partIndex });
      events.push({
        type: "response-end",
        reason: settled(reason ?? "stop"),
        ...(stopSequence ? { stopSequence } : {}),
      });
      return events;
    },

    fail(fault: Fault): InferenceEvent[] {
      if (over) return [];
      over = true;
      return [{ type: "response-failed", fault }];
    },
  };

  /** Engines say `stop` after tool calls, and `tool_calls` without any. */
  function settled(said: StopReason): StopReason {
    if (said === "stop" && toolCalls > 0) return "tool_calls";
    if (said === "tool_calls" && toolCalls === 0) return "stop";
    return said;
  }
}

/** What some engines call the end of a generation that broke. */
const brokenOff = new Set<unknown>(["error", "abort"]);

const stopReasons: Record<string, StopReason> = {
  stop: "stop",
  length: "length",
  max_tokens: "length",
  tool_calls: "tool_calls",
  function_call: "tool_calls",
  content_filter: "content_filter",
};

/** Content is a string; some engines send parts, thinking among them. */
function contentOf(content: unknown): { kind: "text" | "reasoning"; text: string }[] {
  if (!Array.isArray(content)) return [{ kind: "text", text: textOf(content) }];
  return content.filter(isObject).map((part) => {
    if (part.type !== "thinking") return { kind: "text", text: textOf(part.text) };
    const inner = Array.isArray(part.thinking) ? part.thinking.filter(isObject).map((piece) => textOf(piece.text)) : [];
    return { kind: "reasoning", text: textOf(part.thinking) + inner.join("") };
  });
}

function logprobsOf(choice: JsonObject): TokenLogprob[] {
  const content = isObject(choice.logprobs) ? choice.logprobs.content : undefined;
  if (!Array.isArray(content)) return [];
  return content.filter(isObject).map((value) => ({
    ...logprobOf(value),
    top_logprobs: Array.isArray(value.top_logprobs) ? value.top_logprobs.filter(isObject).map(logprobOf) : [],
  }));
}

function logprobOf(value: JsonObject) {
  const bytes = Array.isArray(value.bytes)
    ? value.bytes.filter((byte) => Number.isInteger(byte) && byte >= 0 && byte < 256)
    : null;
  return {
    token: textOf(value.token),
    // JSON has no -Infinity; engines that mean it send null or a very small number.
    logprob: typeof value.logprob === "number" ? value.logprob : -9999,
    bytes,
  };
}

/** The forms in which engines say "error" where an answer should stand. */
function failureOf(chunk: JsonObject): Fault | null {
  const said =
    chunk.error ?? (chunk.object === "error" ? chunk : undefined) ?? (chunk.choices ? undefined : chunk.detail);
  if (said === undefined || said === null || said === false) return null;
  const status = isObject(said) ? Number(said.code ?? said.status ?? 500) : 500;
  return decodeFault(status >= 400 && status < 600 ? status : 500, chunk);
}
