/** The centre → what chat clients read: chunks that end with one [DONE], or one completion. */
import type { InferenceEvent, PartHead, StopReason, TokenLogprob } from "../../inference/event.ts";
import type { Result, ResultPart } from "../../inference/result.ts";
import { noUsage, type Usage } from "../../inference/usage.ts";
import { comment } from "../../sse/encode.ts";
import type { SseMessage } from "../../sse/message.ts";
import type { StreamContext, StreamEncoder } from "../codec.ts";
import { type AroundDelta, aroundDelta } from "../delta-frame.ts";
import { PartQueue } from "../part-queue.ts";
import type { ChatChoice, ChatCompletion, ChatCompletionRequest, ChatDelta } from "./contract.ts";
import { encodeFault } from "./fault.ts";
import { encodeUsage } from "./usage.ts";

export function streamEncoder(wire: ChatCompletionRequest, { requestId }: StreamContext): StreamEncoder {
  const wantsUsage = wire.stream_options?.include_usage === true;
  /** Everything before `choices`: the same bytes in every chunk of the stream. */
  let head = "";
  const tail = wantsUsage ? `,"usage":null}` : "}";
  let usage: Usage = noUsage;
  /** Of the part that is told; calls are counted in order of appearance. */
  let kind: PartHead["kind"] = "text";
  let calls = 0;
  let around: AroundDelta = { before: "", after: "" };
  const parts = new PartQueue();

  const chunk = (
    delta: ChatDelta,
    logprobs?: TokenLogprob[],
    finish: StopReason | null = null,
    more = "",
  ): SseMessage => ({
    data: `${head}[{"index":0,"delta":${JSON.stringify(delta)},"logprobs":${
      logprobs ? JSON.stringify({ content: logprobs, refusal: null }) : "null"
    },"finish_reason":${finish ? `"${finish}"` : "null"}${more}}]${tail}`,
  });

  function deltaOf(delta: string): ChatDelta {
    switch (kind) {
      case "tool-call":
        return { tool_calls: [{ index: calls - 1, function: { arguments: delta } }] };
      case "reasoning":
        return { reasoning_content: delta };
      case "refusal":
        return { refusal: delta };
      case "text":
        return { content: delta };
    }
  }

  function said(event: InferenceEvent): SseMessage[] {
    switch (event.type) {
      case "response-start": {
        const { responseId: id, createdAtSeconds: created, model } = event;
        head = `${JSON.stringify({ id, object: "chat.completion.chunk", created, model }).slice(0, -1)},"choices":`;
        return [chunk({ role: "assistant", content: "" })];
      }
      case "part-start": {
        const { part } = event;
        kind = part.kind;
        if (part.kind === "tool-call") calls += 1;
        around = aroundDelta(chunk(deltaOf("")));
        if (part.kind !== "tool-call") return [];
        const { callId: id, toolName: name } = part;
        const call = { index: calls - 1, id, type: "function" as const, function: { name, arguments: "" } };
        return [chunk({ tool_calls: [call] })];
      }
      case "part-delta": {
        const { delta, logprobs } = event;
        return [chunk(deltaOf(delta), kind === "text" && logprobs ? asAsked(logprobs, wire) : undefined)];
      }
      case "part-end":
        return [];
      case "usage":
        usage = event.usage;
        return [];
      case "response-end": {
        const matched = JSON.stringify(matchedStop(event, wire)).slice(1, -1);
        const last = [chunk({}, undefined, event.reason, matched && `,${matched}`)];
        if (wantsUsage) last.push({ data: `${head}[],"usage":${JSON.stringify(encodeUsage(usage))}}` });
        return [...last, done];
      }
      case "response-failed":
        return [{ data: JSON.stringify(encodeFault(event.fault, requestId)) }, done];
    }
  }
  return {
    frame(event) {
      if (event.logprobs || !parts.takes(event)) return null;
      return around.before + JSON.stringify(event.delta) + around.after;
    },
    push: (event) => parts.push(event).flatMap(said),
    end: () => [],
    heartbeat: () => waiting,
  };
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
  const of = (kind: ResultPart["head"]["kind"]) => result.parts.filter((part) => part.head.kind === kind);
  const text = of("text");
  const refusal = of("refusal");
  const reasoning = of("reasoning");
  const toolCalls = result.parts.flatMap(({ head, text: written }) =>
    head.kind === "tool-call"
      ? [{ id: head.callId, type: "function" as const, function: { name: head.toolName, arguments: written } }]
      : [],
  );
  const logprobs =
    asAsked(
      text.flatMap((part) => part.logprobs ?? []),
      wire,
    ) ?? [];
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
          content: text.length > 0 ? joined(text) : toolCalls.length > 0 || refusal.length > 0 ? null : "",
          refusal: refusal.length > 0 ? joined(refusal) : null,
          ...(reasoning.length > 0 ? { reasoning_content: joined(reasoning) } : {}),
          ...(toolCalls.length > 0 ? { tool_calls: toolCalls } : {}),
        },
        logprobs: logprobs.length > 0 ? { content: logprobs, refusal: null } : null,
        finish_reason: result.reason,
        ...matchedStop(result, wire),
      },
    ],
    usage: encodeUsage(result.usage),
  };
}

function joined(parts: ResultPart[]): string {
  return parts.map((part) => part.text).join("");
}
