/**
 * What an engine that speaks Messages answers → events. An answer has ended when the engine said `message_stop`; anything
 * else was cut. Pings, and events and blocks that nobody knows, are passed over; what leaves is grammatical.
 */
import type { InferenceEvent } from "../../inference/event.ts";
import type { Fault } from "../../inference/fault.ts";
import type { SseMessage } from "../../sse/message.ts";
import type { ResponseIdentity, Transducer } from "../codec.ts";
import { isObject, type JsonObject, textOf } from "../json.ts";
import { answerCutShort, malformedAnswer } from "../refusal.ts";
import type { Report, ReportWords } from "../report.ts";
import { AnswerParts } from "./answer-parts.ts";
import { decodeErrorEvent } from "./fault.ts";
import { decodeStop } from "./stop-reason.ts";
import { decodeEarlyUsage, decodeUsage, wordsOf } from "./usage.ts";

export function streamDecoder(identity: ResponseIdentity): Transducer<SseMessage, InferenceEvent> {
  const answer = answerDecoder(identity);
  return {
    push({ event, data }) {
      if (data.trim() === "" || answer.over) return [];
      let value: unknown;
      try {
        value = JSON.parse(data);
      } catch (cause) {
        // Some engines say [DONE] behind their last event.
        return data.trim() === "[DONE]" ? [] : answer.fail(malformedAnswer(cause));
      }
      if (!isObject(value)) return answer.fail(malformedAnswer(new Error("an event that is no object")));
      return answer.push(textOf(value.type) || (event ?? ""), value);
    },
    end: () => answer.end(),
  };
}

/** A whole reply is the events that its blocks would have been. */
export function decodeReply(reply: unknown, identity: ResponseIdentity): InferenceEvent[] {
  const answer = answerDecoder(identity);
  if (!isObject(reply) || isError(reply)) return answer.fail(decodeErrorEvent(reply));
  if (!Array.isArray(reply.content)) return answer.fail(malformedAnswer(new Error("a message without content")));
  return [
    ...answer.push("message_start", { message: { usage: reply.usage } }),
    ...reply.content.flatMap((block, index) => [
      ...answer.push("content_block_start", { index, content_block: block }),
      ...answer.push("content_block_stop", { index }),
    ]),
    ...answer.push("message_delta", { delta: reply, usage: reply.usage }),
    ...answer.push("message_stop", {}),
  ];
}

function isError(value: JsonObject): boolean {
  return value.type === "error" || (isObject(value.error) && value.content === undefined);
}

function isNamelessCall(block: unknown): boolean {
  return isObject(block) && block.type === "tool_use" && textOf(block.name) === "";
}

function answerDecoder(identity: ResponseIdentity) {
  const parts = new AnswerParts(identity.responseId);
  let started = false;
  let over = false;
  let words: ReportWords | undefined;
  let stopReason: string | null = null;
  let stopSequence: string | undefined;

  function start(): InferenceEvent[] {
    if (started) return [];
    started = true;
    return [{ type: "response-start", ...identity }];
  }

  function report(value: unknown): InferenceEvent[] {
    const said = wordsOf(value, words);
    if (said === words) return [];
    words = said;
    return told(decodeUsage(said));
  }

  function earlyReport(message: unknown): InferenceEvent[] {
    const said = wordsOf(isObject(message) ? message.usage : undefined);
    const early = decodeEarlyUsage(said);
    if (early) words = said;
    return told(early);
  }

  function told(said: Report | null): InferenceEvent[] {
    return said ? [{ type: "usage", ...said }] : [];
  }

  function push(type: string, event: JsonObject): InferenceEvent[] {
    if (over) return [];
    switch (type) {
      case "message_start":
        return [...start(), ...earlyReport(event.message)];
      case "content_block_start":
        if (isNamelessCall(event.content_block)) return fail(malformedAnswer(new Error("a tool call without a name")));
        return [...start(), ...parts.open(event.index, event.content_block)];
      case "content_block_delta":
        return [...start(), ...parts.delta(event.index, event.delta)];
      case "content_block_stop":
        return parts.close(event.index);
      case "message_delta": {
        const delta = isObject(event.delta) ? event.delta : {};
        if (typeof delta.stop_reason === "string") stopReason = delta.stop_reason;
        if (typeof delta.stop_sequence === "string") stopSequence = delta.stop_sequence;
        return [...start(), ...report(event.usage)];
      }
      case "message_stop":
        return [...start(), ...stop()];
      case "error":
        return fail(decodeErrorEvent(event));
      default:
        return isError(event) ? fail(decodeErrorEvent(event)) : [];
    }
  }

  function stop(): InferenceEvent[] {
    over = true;
    const ends = parts.closeAll();
    const reason = decodeStop(stopReason, { calls: parts.calls > 0 });
    const sequence = reason === "stop" && stopSequence ? { stopSequence } : {};
    return [...ends, { type: "response-end", reason, ...sequence }];
  }

  function fail(fault: Fault): InferenceEvent[] {
    if (over) return [];
    over = true;
    return [{ type: "response-failed", fault }];
  }

  return {
    get over() {
      return over;
    },
    push,
    fail,
    end: () => fail(answerCutShort("message_stop")),
  };
}
