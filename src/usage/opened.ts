/** A request that is open at an engine, or on its way to one. */
import type { InferenceEvent } from "../inference/event.ts";
import type { Route } from "../routing/catalog.ts";
import type { AttemptKind } from "../upstream/attempt.ts";

/** One attempt at an engine, when it is over. */
export interface Tried {
  /** Its name in the configuration. */
  upstream: string;
  /** Its address, where its name has several. */
  replica?: string;
  outcome: AttemptKind;
  ms: number;
}

export interface OpenedEvents extends AsyncIterable<InferenceEvent[]> {
  next(): Promise<IteratorResult<InferenceEvent[], void>>;
  /** Aborts the request to the engine, and sweeps up; for whoever stops before the end. */
  return(): Promise<IteratorResult<InferenceEvent[], void>>;
  [Symbol.asyncIterator](): OpenedEvents;
}

export interface Opened {
  /** The one that answers, else the last that was asked; null before any was. */
  readonly route: Route | null;
  /** Whether an engine has the request: while it waits for one, none has read anything. One that failed has it no more. */
  readonly isAtEngine: boolean;
  /** Whether no further engine is asked: nobody needs the conversation any more. */
  readonly isFinal: boolean;
  /** How many times an engine was asked, so far. */
  readonly attempts: number;
  /** Those of them that are over. */
  readonly tried: readonly Tried[];
  /** How long it has waited for room at engines, in milliseconds. */
  readonly queued_ms: number;
  readonly events: OpenedEvents;
  /** Set where a usage window alone is why the engine may not write more than so many tokens. */
  readonly windowTokens: number | null;
}

/** The same, with the engine asked at once: what it says waits until it is read. Whoever does not read it, ends it. */
export function ahead(opened: Opened): Opened {
  return new Ahead(opened);
}

class Ahead implements Opened, OpenedEvents {
  readonly #opened: Opened;
  #first: ReturnType<OpenedEvents["next"]> | null;

  constructor(opened: Opened) {
    this.#opened = opened;
    this.#first = opened.events.next();
  }

  get route(): Route | null {
    return this.#opened.route;
  }

  get attempts(): number {
    return this.#opened.attempts;
  }

  get isAtEngine(): boolean {
    return this.#opened.isAtEngine;
  }

  get isFinal(): boolean {
    return this.#opened.isFinal;
  }

  get tried(): readonly Tried[] {
    return this.#opened.tried;
  }

  get queued_ms(): number {
    return this.#opened.queued_ms;
  }

  get windowTokens(): number | null {
    return this.#opened.windowTokens;
  }

  get events(): OpenedEvents {
    return this;
  }

  next(): ReturnType<OpenedEvents["next"]> {
    const next = this.#first ?? this.#opened.events.next();
    this.#first = null;
    return next;
  }

  return(): ReturnType<OpenedEvents["return"]> {
    return this.#opened.events.return();
  }

  [Symbol.asyncIterator](): OpenedEvents {
    return this;
  }
}
