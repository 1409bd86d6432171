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
  /** Whether an engine has the request: while it waits for one, none has read anything. */
  readonly isAtEngine: boolean;
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
  const { events } = opened;
  let first: ReturnType<OpenedEvents["next"]> | null = events.next();
  return {
    get route() {
      return opened.route;
    },
    get attempts() {
      return opened.attempts;
    },
    get isAtEngine() {
      return opened.isAtEngine;
    },
    tried: opened.tried,
    get queued_ms() {
      return opened.queued_ms;
    },
    windowTokens: opened.windowTokens,
    events: {
      next() {
        const next = first ?? events.next();
        first = null;
        return next;
      },
      return: () => events.return(),
      [Symbol.asyncIterator]() {
        return this;
      },
    },
  };
}
