/** The answer of a model's engines to one request: its events, and the progress of the request. */
import type { InferenceEvent } from "../inference/event.ts";
import type { Route } from "../routing/catalog.ts";
import type { AttemptKind } from "../upstream/attempt.ts";

/** One attempt at an engine that has ended. */
export interface Tried {
  /** The engine's name in the configuration. */
  upstream: string;
  /** The engine's address, if its name has several. */
  replica?: string;
  outcome: AttemptKind;
  ms: number;
  /** Set if the engine continued an answer that another engine had begun. */
  continued?: true;
  /** The HTTP status of the engine's refusal. */
  status?: number;
  /** The engine's own text of its refusal, or of an error inside its answer. Only operators read it. */
  said?: string;
}

/** How far a request has come. Written by the attempts. */
export interface EngineProgress {
  /** The route that answers, or that was tried last; null before any was tried. */
  route: Route | null;
  /**
   * Whether an engine has read the request. False while the request waits for a slot, and after the engine that had it
   * has failed.
   */
  isAtEngine: boolean;
  /** Whether no further engine will be tried, so that the conversation is not needed any more. */
  isFinal: boolean;
  /** Whether the conversation is needed until the end, because another engine may continue the answer. */
  isNeededToTheEnd: boolean;
  /** The share of the input that engines are sent: less than 1 if a compaction left some of it out. */
  inputShare: number;
  /** The number of attempts so far. */
  attempts: number;
  /** The attempts that have ended. */
  readonly tried: Tried[];
  /** How long the request has waited for slots at engines. */
  queued_ms: number;
  /** The output tokens that a usage window leaves, if those are fewer than the request's own cap. */
  windowTokens: number | null;
}

export function initialProgress(): EngineProgress {
  return {
    route: null,
    isAtEngine: false,
    isFinal: false,
    isNeededToTheEnd: false,
    inputShare: 1,
    attempts: 0,
    tried: [],
    queued_ms: 0,
    windowTokens: null,
  };
}

export interface EngineEvents extends AsyncIterable<InferenceEvent[]> {
  next(): Promise<IteratorResult<InferenceEvent[], void>>;
  /** Aborts the request to the engine. Needed only if the events are not read to their end. */
  return(): Promise<IteratorResult<InferenceEvent[], void>>;
  [Symbol.asyncIterator](): EngineEvents;
}

export interface EngineAnswer {
  readonly progress: Readonly<EngineProgress>;
  readonly events: EngineEvents;
}

/**
 * Sends the request at once instead of when the answer is first read. The answer must be read to its end, or returned.
 */
export function startedAnswer({ progress, events }: EngineAnswer): EngineAnswer {
  return { progress, events: new StartedEvents(events) };
}

class StartedEvents implements EngineEvents {
  readonly #events: EngineEvents;
  #first: ReturnType<EngineEvents["next"]> | null;

  constructor(events: EngineEvents) {
    this.#events = events;
    this.#first = events.next();
    // The first event may fail before it is read, and an unhandled rejection ends the process.
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
