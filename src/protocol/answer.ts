/** Base of the decoders of an engine's answer, for all protocols. */
import type { InferenceEvent } from "../inference/event.ts";
import type { Fault } from "../inference/fault.ts";
import type { EngineDecoder, ResponseIdentity } from "./codec.ts";
import { type EngineEvent, isBlank, jsonOf } from "./engine-event.ts";
import { isObject, type JsonObject } from "./json.ts";
import { malformedAnswer } from "./refusal.ts";

/** One answer under way: it begins once, and nothing comes after its end. */
export abstract class Answer {
  protected readonly identity: ResponseIdentity;
  #started = false;
  #over = false;

  constructor(identity: ResponseIdentity) {
    this.identity = identity;
  }

  get over(): boolean {
    return this.#over;
  }

  /** Reports whether `push` looks at an event of this name. If not, it is given an empty one. */
  reads(_name: string): boolean {
    return true;
  }

  /** Takes the JSON of one event of the stream. `name` is the event's name; "" if it has none. */
  abstract push(event: JsonObject, name: string): InferenceEvent[];

  /** Takes the end of the stream. */
  abstract end(): InferenceEvent[];

  /** Takes `[DONE]`, which some engines write behind their last event in every protocol. */
  done(): InferenceEvent[] {
    return [];
  }

  /** Ends the answer with a fault, unless it is over. */
  fail(fault: Fault): InferenceEvent[] {
    if (this.#over) return [];
    this.#over = true;
    return [{ type: "response-failed", fault }];
  }

  /** The event that begins the answer; nothing if it has begun. */
  protected started(): InferenceEvent[] {
    if (this.#started) return [];
    this.#started = true;
    return [{ type: "response-start", ...this.identity }];
  }

  protected endsHere(): void {
    this.#over = true;
  }
}

/** Reads the events of a stream as JSON, and passes them to its answer. */
export class StreamDecoder implements EngineDecoder {
  readonly #answer: Answer;

  constructor(answer: Answer) {
    this.#answer = answer;
  }

  reads(name: string): boolean {
    return this.#answer.reads(name);
  }

  push(event: EngineEvent): InferenceEvent[] {
    const answer = this.#answer;
    const name = event.event ?? "";
    if (answer.over) return [];
    if (!answer.reads(name)) return answer.push({}, name);
    if (isBlank(event)) return [];
    let value: unknown;
    try {
      value = jsonOf(event);
    } catch (cause) {
      return event.data.trim() === "[DONE]" ? answer.done() : answer.fail(malformedAnswer(cause));
    }
    if (!isObject(value)) return answer.fail(malformedAnswer(new Error("an event that is no object")));
    return answer.push(value, name);
  }

  end(): InferenceEvent[] {
    return this.#answer.end();
  }
}
