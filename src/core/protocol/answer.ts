/** Base of the decoders of an engine's answer, for all protocols. */
import { compact } from "../inference/compact.ts";
import type { InferenceEvent, StopReason } from "../inference/event.ts";
import type { Fault } from "../inference/fault.ts";
import { WholeCharacters } from "./characters.ts";
import type { EngineDecoder, ResponseIdentity } from "./codec.ts";
import type { Dialect } from "./dialect.ts";
import { dialects } from "./dialects.ts";
import { type EngineEvent, isBlank, jsonOf } from "./engine-event.ts";
import { FinishReason } from "./finish-reasons.ts";
import { isObject, type JsonObject } from "./json.ts";
import { malformedAnswer } from "./refusal.ts";

/** The decoder of one answer: it begins the answer once, and emits nothing after its end. */
export abstract class BaseAnswerDecoder {
  protected readonly identity: ResponseIdentity;
  protected readonly dialect: Dialect;
  protected readonly reason: FinishReason;
  #started = false;
  #over = false;

  constructor(identity: ResponseIdentity, dialect: Dialect = dialects.generic) {
    this.identity = identity;
    this.dialect = dialect;
    this.reason = new FinishReason(dialect.finishReasons);
  }

  get over(): boolean {
    return this.#over;
  }

  /** Whether `push` uses events of this name. If not, it is given an empty object. */
  reads(_name: string): boolean {
    return true;
  }

  /** Takes one event of the stream. `name`: the event's name, "" if it has none. */
  abstract push(event: JsonObject, name: string): InferenceEvent[];

  /** Called when the stream has ended. */
  abstract end(): InferenceEvent[];

  /** Called for `[DONE]`, which some engines send after their last event in every protocol. */
  abstract done(): InferenceEvent[];

  /** Ends the answer with a fault, unless it has ended. */
  fail(fault: Fault): InferenceEvent[] {
    if (this.#over) return [];
    this.#over = true;
    return [{ type: "response-failed", fault }];
  }

  /** The event that begins the answer; none if it has begun. */
  protected started(): InferenceEvent[] {
    if (this.#started) return [];
    this.#started = true;
    return [{ type: "response-start", ...this.identity }];
  }

  /** The event that ends the answer. */
  protected ends(reason: StopReason, stopSequence?: string): InferenceEvent {
    this.#over = true;
    return {
      type: "response-end",
      reason,
      ...compact({ stopSequence: stopSequence || undefined, unknownReason: this.reason.unknown }),
    };
  }
}

/** The events of a complete reply, with half characters joined, or replaced by U+FFFD. */
export function wholeReply(events: InferenceEvent[]): InferenceEvent[] {
  return new WholeCharacters().mend(events);
}

/** Reads the events of a stream as JSON, and passes them to its answer. */
export class StreamDecoder implements EngineDecoder {
  readonly #answer: BaseAnswerDecoder;
  readonly #characters = new WholeCharacters();

  constructor(answer: BaseAnswerDecoder) {
    this.#answer = answer;
  }

  reads(name: string): boolean {
    return this.#answer.reads(name);
  }

  push(event: EngineEvent): InferenceEvent[] {
    return this.#characters.mend(this.#decoded(event));
  }

  end(): InferenceEvent[] {
    return this.#characters.mend(this.#answer.end());
  }

  #decoded(event: EngineEvent): InferenceEvent[] {
    const answer = this.#answer;
    const name = event.event ?? "";
    if (answer.over) return [];
    if (!answer.reads(name)) return answer.push({}, name);
    if (isBlank(event)) return [];
    let value: unknown;
    try {
      value = jsonOf(event);
    } catch (cause) {
      return this.#unparsed(event, cause);
    }
    if (!isObject(value)) return answer.fail(malformedAnswer(new Error("an event that is no object")));
    return answer.push(value, name);
  }

  /**
   * Handles an event that is not JSON: some engines end an event with a single line end, which joins it to the next
   * one.
   */
  #unparsed(event: EngineEvent, cause: unknown): InferenceEvent[] {
    const { data } = event;
    if (data.trim() === "[DONE]") return this.#answer.done();
    const lines = data.split("\n");
    if (lines.length === 1) return this.#answer.fail(malformedAnswer(cause));
    return lines.flatMap((line) => this.#decoded({ ...event, data: line }));
  }
}
