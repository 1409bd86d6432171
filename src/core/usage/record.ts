/**
 * USAGE, the record of a request: what is known of it before it runs, how far its engines have come with it, and how it
 * ended.
 */
import type { Entry } from "../admission/entrance.ts";
import type { OwnBytes } from "../body/own-bytes.ts";
import type { InferenceEvent } from "../inference/event.ts";
import type { Fault } from "../inference/fault.ts";
import type { Media } from "../inference/media.ts";
import type { RejectedReport, Usage } from "../inference/usage.ts";
import type { Loss, ResponseIdentity } from "../protocol/codec.ts";
import type { CatalogModel, CodecOf, Route } from "../routing/catalog.ts";
import type { BillingSource, Operation, StoppingLimit } from "../store/ledger.ts";
import type { AttemptEnd, AttemptKind } from "../upstream/attempt.ts";
import type { Signals } from "./departure.ts";
import type { RunTrace } from "./trace.ts";

/**
 * The record of a request, from its preparation to its end: admission, attempts and the count all get this object. For
 * a compaction or a continued answer, a different request is made from it for the engine.
 */
export interface RunRequest extends Entry {
  model: CatalogModel;
  /** The response id, the time of creation and the model id that the caller sees in the answer. */
  identity: ResponseIdentity;
  /** The client's name for its conversation, from a header. */
  session: string | null;
  /** The betas of Messages that the client names in a header. */
  betas?: string | null;
  /**
   * The number of bytes from which `inputTokens` was estimated: the caller's body with everything that it refers to. For
   * a ranking, the query counts again for each document; for a compaction, turns that are left out do not count.
   */
  inputBytes: number;
  /** About how many of these bytes are white space (src/core/body/read.ts); absent: none. */
  blank_bytes?: number;
  /** The bytes of a large request as the caller wrote them, for the first engine. */
  own?: OwnBytes | null;
  /** The likely size of the whole prompt, which is charged if no engine reports. At most `inputTokens`. */
  inputTokensExpected: number;
  media: Media;
  outputTokensAllowed: number;
  /** The caller's own cap, if the request's may be larger, because an engine of the model takes no smaller one. */
  outputTokensAsked?: number | undefined;
  /** The codec of the requests to engines; absent: the codec of each engine's protocol. */
  codecOf?: CodecOf;
  /** How the answer is fetched, if it is a background response. */
  fetched?: Fetched | null;
  /**
   * Called with the bytes of memory that the answer takes, if they are many. May throw the Fault that ends the request.
   */
  holdAnswer?: ((bytes: number) => void) | undefined;
}

/** A background response: its client can fetch its text after its end, and if it is streamed also while it runs. */
export interface Fetched {
  /** Whether text can be fetched as it is produced. Otherwise only the whole answer can. */
  readonly asProduced: boolean;
  /** Whether everything that was produced can be fetched, or will be. */
  readonly isKept: boolean;
  /** Whether the text can be streamed as it is produced, to its first client and to others. */
  readonly isStreamed: boolean;
  /** Resolves to true when the client has all events so far or can fetch them, or to false if it never can. */
  delivered(): Promise<boolean>;
}

export interface AttemptRequest extends Signals {
  asked: RunRequest;
  /**
   * The output tokens that an answer may have. `allowed`: as many as the model and its context allow; `held`: as many
   * as the hold (the amount reserved so far) pays for. `isSlight`: as in the request's `Reservation`; absent: not
   * known.
   */
  room: { allowed: number; held: number; isSlight?: boolean };
  /** Resolves when the ledger has granted the request. Only then may the request wait for a slot. */
  granted: Promise<void>;
  /** Routes that must not be asked, because they failed in the middle of this answer. */
  except?: readonly Route[];
  trace?: RunTrace | null;
}

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

export function triedOf(route: Route, { kind, status, said }: AttemptEnd, ms: number, isContinued: boolean): Tried {
  const { name: upstream, address: replica } = route.upstream;
  return {
    upstream,
    ...(replica && { replica }),
    outcome: kind,
    ms: Math.round(ms),
    ...(isContinued && { continued: true }),
    ...(status !== undefined && { status }),
    ...(said !== undefined && { said }),
  };
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
  sent_bytes: number;
  attempts: number;
  readonly tried: Tried[];
  /** How long the request has waited for slots at engines. */
  queued_ms: number;
  /** The output tokens that a usage window still pays for, if those are fewer than the request's own cap; else null. */
  windowTokens: number | null;
}

export function initialProgress(): EngineProgress {
  return {
    route: null,
    isAtEngine: false,
    isFinal: false,
    isNeededToTheEnd: false,
    inputShare: 1,
    sent_bytes: Number.POSITIVE_INFINITY,
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
 * Sends the request at once instead of when the answer is first read. The answer must be read to its end, or ended with
 * `return`.
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

export interface Ending {
  usage: Usage;
  outcome: "completed" | "cancelled" | "failed";
  /** The limit of a usage window that cut the answer short. */
  stoppedBy: StoppingLimit | null;
  errorCode: string | null;
  /** The fault that made the request fail; null if it did not fail, or if none is known. Its cause is for the log alone. */
  fault: Fault | null;
  /** The engine's usage report, if it was rejected. */
  reportRejected: RejectedReport | null;
  /** The reported tokens of a complete answer ÷ our count of it; null if either is missing. */
  divergence: number | null;
}

export interface Ended extends Ending {
  requestId: string;
  operation: Operation;
  /** The public model id. */
  model: string;
  organizationId: string;
  stream: boolean;
  /** The price of the request's usage, even if the usage windows had room for only a part of it. */
  nanos: number;
  inputTokensExpected: number;
  /** The engine's name in the configuration; null if no engine was tried. */
  upstream: string | null;
  /** The engine's address if its name has several; else null. */
  replica: string | null;
  tried: readonly Tried[];
  queued_ms: number;
  /** Milliseconds from the request's arrival to the first part of its answer; null if no part arrived. */
  firstPart_ms: number | null;
  /** Milliseconds from the request's arrival to the end of its answer. */
  total_ms: number;
  /** The id of the request's trace, if the trace is sampled; metrics name it. */
  traceId: string | undefined;
}

export interface Attempted {
  /** The public model id. */
  model: string;
  route: Route;
  end: AttemptEnd;
  ms: number;
}

/** A difference between what the caller wrote and what an engine was sent. */
export interface LostField {
  model: string;
  route: Route;
  loss: Loss;
}

/**
 * A request's wait for a slot at an engine, once the wait has ended. `full`: too many requests already waited, or this
 * one waited too long.
 */
export interface Waited {
  model: string;
  outcome: "served" | "left" | "full";
  ms: number;
}

/** Observes every run. The ledger is informed before the observers. */
export interface Watcher {
  granted(source: BillingSource): void;
  ended(ended: Ended): void;
}

export interface Caller extends Watcher, Readonly<Signals> {
  /** Whether the caller has left, so that nobody reads the rest. */
  readonly left: boolean;
  /** Whether the answer counts as cancelled, even if all of it has arrived. */
  readonly isCancelled?: boolean;
  /** Ends the work on the answer, which then ends with this fault. */
  end(fault: Fault): void;
  /** The milliseconds since the request arrived. */
  elapsed_ms(): number;
  /** Reserves memory for this many more bytes of the answer until the request is settled. False if there is no room. */
  keepsText(bytes: number): boolean;
  readonly trace?: RunTrace | null;
}
