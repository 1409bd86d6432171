/** What the answer of any engine says once, whatever its protocol: that it began, and that it is over. */
import type { InferenceEvent } from "../inference/event.ts";
import type { Fault } from "../inference/fault.ts";
import type { ResponseIdentity } from "./codec.ts";

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

  /** Nothing where it is over. */
  fail(fault: Fault): InferenceEvent[] {
    if (this.#over) return [];
    this.#over = true;
    return [{ type: "response-failed", fault }];
  }

  /** Nothing where it began before. */
  protected started(): InferenceEvent[] {
    if (this.#started) return [];
    this.#started = true;
    return [{ type: "response-start", ...this.identity }];
  }

  protected endsHere(): void {
    this.#over = true;
  }
}
