/** The answer of a model's engines to one request: its events, and how far the request has come. */
import type { InferenceEvent } from "../inference/event.ts";
import type { Route } from "../routing/catalog.ts";
import type { AttemptKind } from "../upstream/attempt.ts";

/** One attempt at an engine that is over. */
export interface Tried {
  /** The engine's name in the configuration. */
  upstream: string;
  /** The engine's address, where its name has several. */
  replica?: string;
  outcome: AttemptKind;
  ms: number;
}

/** How far a request has come. Written by the attempts. */
export interface EngineProgress {
  /** The route that answers, else the last that was tried; null before any was. */
  route: Route | null;
  /** Whether an engine has read the request. False while it waits for one, or once the engine that had it has failed. */
  isAtEngine: boolean;
  /** Whether no further engine will be tried: nobody needs the conversation any more. */
  isFinal: boolean;
  /** The share of the input that engines are sent: less than 1 where a compaction left some out. */
  inputShare: number;
  /** The attempts so far. */
  attempts: number;
  /** The attempts that are over. */
  readonly tried: Tried[];
  /** How long the request has waited for slots at engines. */
  queued_ms: number;
  /** The output tokens that a usage window leaves, where that is less than the request's own cap. */
  windowTokens: number | null;
}

export function nowhereYet(): EngineProgress {
  return {
    route: null,
    isAtEngine: false,
    isFinal: false,
    inputShare: 1,
    attempts: 0,
    tried: [],
    queued_ms: 0,
    windowTokens: null,
  };
}

export interface EngineEvents extends AsyncIterable<InferenceEvent[]> {
  next(): Promise<IteratorResult<InferenceEvent[], void>>;
  /** Aborts the request to the engine. Needed only where the events are not read to their end. */
  return(): Promise<IteratorResult<InferenceEvent[], void>>;
  [Symbol.asyncIterator](): EngineEvents;
}

export interface EngineAnswer {
  readonly progress: Readonly<EngineProgress>;
  readonly events: EngineEvents;
}

/** The same answer, requested at once instead of when it is first read. It must be read to its end, or returned. */
export function started({ progress, events }: EngineAnswer): EngineAnswer {
  return { progress, events: new StartedEvents(events) };
}

class StartedEvents implements EngineEvents {
  readonly #events: EngineEvents;
  #first: ReturnType<EngineEvents["next"]> | null;

  constructor(events: EngineEvents) {
    this.#events = events;
    this.#first = events.next();
    // It may fail before anybody reads it, and a rejection that nobody hears ends the process.
    this.#first.catch(() => {});
  }

  next(): ReturnType<EngineEvents["next"]> {
    const next = this.#first ?? this.#events.next();
    this.#first = null;
    return next;
  }

  return(): ReturnType<EngineEvents["return"]> {
    return this.#events.return();
  }

  [Symbol.asyncIterator](): EngineEvents {
    return this;
  }
}
