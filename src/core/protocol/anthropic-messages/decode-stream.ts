/**
 * Turns the answer of an engine that speaks Messages into protocol-independent events (inference/event.ts). An answer
 * without a reason for its end was cut off, and one with a reason is whole, even without `message_stop`. Pings, and
 * unknown events and blocks, are skipped.
 */
import type { InferenceEvent } from "../../inference/event.ts";
import { BaseAnswerDecoder, wholeReply } from "../answer.ts";
import type { AnswerContext, EngineDecoder, ResponseIdentity } from "../codec.ts";
import type { Dialect } from "../dialect.ts";
import { dialects } from "../dialects.ts";
import { isObject, type JsonObject, textOf } from "../json.ts";
import { answerCutShort, malformedAnswer } from "../refusal.ts";
import { type Report, type ReportedValues, reportOf } from "../report.ts";
import { AnswerParts } from "./answer-parts.ts";
import { decodeErrorEvent } from "./fault.ts";
import { decodeStop } from "./stop-reason.ts";
import { decodeEarlyUsage, valuesOf } from "./usage.ts";

export function streamDecoder(identity: ResponseIdentity, { dialect }: AnswerContext = {}): EngineDecoder {
  return new AnswerDecoder(identity, dialect);
}

/** Decodes a whole reply into the events that a stream of the same answer would have. */
export function decodeReply(
  reply: unknown,
  identity: ResponseIdentity,
  { dialect = dialects.generic }: AnswerContext = {},
): InferenceEvent[] {
  const answer = new AnswerDecoder(identity, dialect);
  if (!isObject(reply) || isError(reply)) return answer.fail(decodeErrorEvent(reply, dialect));
  if (!Array.isArray(reply.content)) return answer.fail(malformedAnswer(new Error("a message without content")));
  return wholeReply([
    ...answer.take({ type: "message_start", message: { usage: reply.usage } }),
    ...reply.content.flatMap((block, index) => [
      ...answer.take({ type: "content_block_start", index, content_block: block }),
      ...answer.take({ type: "content_block_stop", index }),
    ]),
    ...answer.take({ type: "message_delta", delta: reply, usage: reply.usage }),
    ...answer.take({ type: "message_stop" }),
  ]);
}

function isError(value: JsonObject): boolean {
  return value.type === "error" || (isObject(value.error) && value.content === undefined);
}

function isNamelessCall(block: unknown): boolean {
  return isObject(block) && block.type === "tool_use" && textOf(block.name) === "";
}

class AnswerDecoder extends BaseAnswerDecoder {
  readonly #parts: AnswerParts;
  #values: ReportedValues | undefined;
  #stopSequence: string | undefined;

  constructor(identity: ResponseIdentity, dialect?: Dialect) {
    super(identity, dialect);
    this.#parts = new AnswerParts(identity.responseId);
  }

  protected ended(): InferenceEvent[] {
    if (this.over) return [];
    return this.reason.known === null ? this.fail(answerCutShort("message_stop")) : this.#stop();
  }

  protected done(): InferenceEvent[] {
    return this.over ? [] : this.#stop(this.#parts.areSaid);
  }

  take(event: JsonObject, name = ""): InferenceEvent[] {
    if (this.over) return [];
    switch (textOf(event.type) || name) {
      case "message_start":
        return [...this.started(), ...this.#earlyReport(event.message)];
      case "content_block_start":
        if (isNamelessCall(event.content_block))
          return this.fail(malformedAnswer(new Error("a tool call without a name")));
        return [...this.started(), ...this.#parts.open(event.index, event.content_block)];
      case "content_block_delta":
        return [...this.started(), ...this.#parts.delta(event.index, event.delta)];
      case "content_block_stop":
        return this.#parts.close(event.index);
      case "message_delta": {
        const delta = isObject(event.delta) ? event.delta : {};
        this.reason.take(delta.stop_reason);
        if (this.reason.isFailed) return this.fail(answerCutShort("stop_reason"));
        if (typeof delta.stop_sequence === "string") this.#stopSequence = delta.stop_sequence;
        return [...this.started(), ...this.#report(event.usage)];
      }
      case "message_stop":
        return [...this.started(), ...this.#stop()];
      case "error":
        return this.fail(decodeErrorEvent(event, this.dialect));
      default:
        // An error event of llama.cpp is recognised by the event's name: the `type` in its data is the kind of error.
        return isError(event) || name === "error" ? this.fail(decodeErrorEvent(event, this.dialect)) : [];
    }
  }

  #report(value: unknown): InferenceEvent[] {
    const values = valuesOf(value, this.#values);
    if (values === this.#values) return [];
    this.#values = values;
    return usageEvents(reportOf(values, { inclusive: false }));
  }

  #earlyReport(message: unknown): InferenceEvent[] {
    const values = valuesOf(isObject(message) ? message.usage : undefined);
    const early = decodeEarlyUsage(values);
    if (early) this.#values = values;
    return usageEvents(early);
  }

  /** Ends the answer. `isWhole`: the answer is complete even if the engine gave no reason for its end. */
  #stop(isWhole = false): InferenceEvent[] {
    const { known, unknown } = this.reason;
    if (known === null && unknown === undefined && !isWhole) return this.fail(answerCutShort("stop_reason"));
    const parts = this.#parts.closeAll();
    const reason = decodeStop(known ?? "stop", { calls: this.#parts.calls > 0 });
    return [...parts, this.ends(reason, reason === "stop" ? this.#stopSequence : undefined)];
  }
}

function usageEvents(report: Report | null): InferenceEvent[] {
  return report ? [{ type: "usage", ...report }] : [];
}
