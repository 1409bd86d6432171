/**
 * Turns the answer of an engine that speaks Responses into events that follow the grammar of inference/event.ts. An
 * answer without `response.completed` or `response.incomplete` was cut off. Unknown events are skipped.
 */
import type { InferenceEvent, StopReason } from "../../inference/event.ts";
import { BaseAnswerDecoder, wholeReply } from "../answer.ts";
import type { AnswerContext, EngineDecoder, ResponseIdentity } from "../codec.ts";
import { dialects } from "../dialects.ts";
import { isObject, type JsonObject, textOf } from "../json.ts";
import { usageReported } from "../openai-usage.ts";
import { answerCutShort, malformedAnswer } from "../refusal.ts";
import { AnswerParts } from "./answer-parts.ts";
import { decodeFailure } from "./fault.ts";

export function streamDecoder(identity: ResponseIdentity, context: AnswerContext = {}): EngineDecoder {
  return new AnswerDecoder(identity, context);
}

/** Decodes a reply that was not streamed. The reply is the object that a stream has in its last event. */
export function decodeReply(reply: unknown, identity: ResponseIdentity, context: AnswerContext = {}): InferenceEvent[] {
  const answer = new AnswerDecoder(identity, context);
  if (!isObject(reply)) return answer.fail(malformedAnswer(new Error("a reply that is no object")));
  const status = textOf(reply.status);
  if (status === "" && !Array.isArray(reply.output))
    return answer.fail(decodeFailure(reply, context.dialect ?? dialects.generic));
  const events = answer.take({ type: `response.${status || "completed"}`, response: reply });
  return wholeReply([...events, ...answer.fail(answerCutShort("an end"))]);
}

/**
 * Events that only say that the answer has begun. OpenAI and vLLM repeat the tools and instructions of the request in
 * each of them.
 */
const beginnings: readonly string[] = ["response.created", "response.in_progress", "response.queued"];

class AnswerDecoder extends BaseAnswerDecoder {
  readonly #outputTokens_max: number;
  readonly #parts: AnswerParts;

  constructor(identity: ResponseIdentity, { outputTokens_max, dialect }: AnswerContext) {
    super(identity, dialect);
    this.#outputTokens_max = outputTokens_max ?? Number.POSITIVE_INFINITY;
    this.#parts = new AnswerParts(identity.responseId);
  }

  override reads(name: string): boolean {
    return !beginnings.includes(name);
  }

  protected ended(): InferenceEvent[] {
    return this.fail(answerCutShort("response.completed"));
  }

  protected done(): InferenceEvent[] {
    if (this.over) return [];
    return this.#parts.areSaid ? this.#end({}, null) : this.ended();
  }

  take(event: JsonObject, name = ""): InferenceEvent[] {
    if (this.over) return [];
    const type = textOf(event.type) || name;
    if (!this.reads(type)) return this.started();
    const response = isObject(event.response) ? event.response : {};
    switch (type) {
      case "response.completed":
        return this.#completed(response);
      case "response.incomplete":
        return this.#incomplete(response);
      case "response.failed":
      case "response.cancelled":
        return this.fail(decodeFailure(response, this.dialect));
      case "error":
        return this.fail(decodeFailure(event, this.dialect));
      default: {
        if (isObject(event.error)) return this.fail(decodeFailure(event, this.dialect));
        const events = this.#partEvents(type, event);
        return events.length > 0 ? [...this.started(), ...events] : [];
      }
    }
  }

  /** Ends an answer as the response's own status says: vLLM sends `response.completed` for every status. */
  #completed(response: JsonObject): InferenceEvent[] {
    const status = textOf(response.status);
    if (status === "incomplete") return this.#incomplete(response);
    if (status === "failed" || status === "cancelled") return this.fail(decodeFailure(response, this.dialect));
    return this.#end(response, null);
  }

  /** Ends an incomplete answer: the token limit cut the answer off, unless the engine gives another reason. */
  #incomplete(response: JsonObject): InferenceEvent[] {
    const { incomplete_details: details } = response;
    this.reason.take(isObject(details) ? details.reason : null);
    if (this.reason.isFailed) return this.fail(answerCutShort("a reason of its own"));
    return this.#end(response, this.reason.known === "content_filter" ? "content_filter" : "length");
  }

  #end(response: JsonObject, cut: StopReason | null): InferenceEvent[] {
    const parts = this.#parts;
    const events = [...this.started(), ...parts.final(response.output)];
    const report = usageReported(response, this.dialect.usage, "responses");
    if (report) events.push({ type: "usage", ...report });
    if (parts.unnamed) return [...events, ...this.fail(malformedAnswer(new Error("a tool call without a name")))];
    // llama.cpp and transformers send `completed` also for an answer that its token limit cut.
    const isFull = report !== null && report.usage.outputTokens >= this.#outputTokens_max;
    const reason = cut ?? (isFull ? "length" : parts.calls > 0 ? "tool_calls" : "stop");
    events.push(this.ends(reason));
    return events;
  }

  #partEvents(type: string, event: JsonObject): InferenceEvent[] {
    const parts = this.#parts;
    switch (type) {
      case "response.output_item.added":
        return parts.begin(event);
      case "response.output_item.done":
        return parts.done(event);
      case "response.output_text.delta":
        return parts.delta(event, "text", event.delta);
      case "response.output_text.done":
        return parts.whole(event, "text", event.text);
      case "response.refusal.delta":
        return parts.delta(event, "refusal", event.delta);
      case "response.refusal.done":
        return parts.whole(event, "refusal", event.refusal);
      case "response.content_part.done":
        return parts.partDone(event);
      case "response.function_call_arguments.delta":
      case "response.custom_tool_call_input.delta":
        return parts.delta(event, "tool-call", event.delta);
      case "response.function_call_arguments.done":
        return parts.whole(event, "tool-call", event.arguments);
      case "response.custom_tool_call_input.done":
        return parts.whole(event, "tool-call", event.input);
      // The name of the event in the Open Responses specification.
      case "response.reasoning.delta":
      case "response.reasoning_text.delta":
      case "response.reasoning_summary_text.delta":
        return parts.delta(event, "reasoning", event.delta);
      default:
        return [];
    }
  }
}
