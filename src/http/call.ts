/** One HTTP request on its way through the service: who, since when, and the signal that ends its work. */

import type { Reservation } from "../body/memory.ts";
import { Fault, type FaultCode, faultCatalogue } from "../inference/fault.ts";
import type { Usage } from "../inference/usage.ts";
import type { BillingSource } from "../store/ledger.ts";
import type { RequestTrace } from "../telemetry/traces.ts";
import { breather, type Pause } from "../time/breather.ts";
import { Cancellation, type Signal } from "../time/cancellation.ts";
import type { Place } from "../time/present.ts";
import type { Tried } from "../usage/engine-answer.ts";
import type { Caller, Ended } from "../usage/run.ts";

/** What the log says of a request, beyond its line. Never content, never a secret. */
export interface CallNotes {
  organization?: string;
  key?: string;
  /** Of the management interface. */
  operator?: string;
  model?: string;
  stream?: boolean;
  /** Of an inference request that was admitted: from what. */
  source?: BillingSource;
  outcome?: string;
  usage?: Usage;
  firstPart_ms?: number;
  /** The engine that answered, or was asked last. */
  upstream?: string;
  replica?: string;
  attempts?: readonly Tried[];
  /** For room at engines. */
  queued_ms?: number;
  code?: string;
  cause?: unknown;
}

/** What a request's connection can tell, and be told. */
export interface Connection {
  /** Of the client, as far as the proxies in between are trusted (client-address.ts). */
  address(): string;
  /** Whether the peer is on this machine. */
  isLocal(): boolean;
  /** Lifts the runtime's own idle timeout, which would cut a quiet stream; or sets it again. */
  keepOpen(isKept: boolean): void;
}

export class Call implements Caller {
  readonly notes: CallNotes = {};
  readonly started_ms = performance.now();
  /** Its address. Of a connection that is gone, the runtime knows none any more. */
  readonly client: string;
  /** Set by what writes a stream: the request ends when that does, not when its handler returns. */
  streaming = false;
  /** To its end: nothing of it has to be thrown away before the answer. */
  bodyIsRead = false;
  /** Among the open ones: of lifecycle.ts alone. */
  place: Place<Call> | null = null;
  /** Between two steps of work on its body. */
  pause: Pause = breather;
  /** Where it is traced. */
  trace: RequestTrace | null = null;
  readonly #work = new Cancellation();
  readonly #halted = new Cancellation();
  #left = false;
  #isKeptOpen = false;
  #memory: Reservation | null = null;
  /** The memory of the text that is kept of its answer. */
  #text: Reservation | null = null;
  #kept: Disposable | null = null;

  constructor(
    /** `req_` + UUIDv7 hex, ours, never the client's. */
    readonly requestId: string,
    readonly request: Request,
    /** Path as routed, for logs and metrics (`/v1/models/{id}`). */
    readonly route: string,
    readonly connection: Connection,
  ) {
    this.client = connection.address();
  }

  /** Ends the work of this request; its reason is the Fault that ended it. */
  get signal(): Signal {
    return this.#work;
  }

  /** The same, and no departure of the client's ends it. */
  get halted(): Signal {
    return this.#halted;
  }

  /** Whether the client went away; nobody reads what is still to come. */
  get left(): boolean {
    return this.#left;
  }

  /** From here on the client's departure ends the work. */
  watchClient(): void {
    const { signal } = this.request;
    if (signal.aborted) this.leave();
    else signal.onabort = () => this.leave();
  }

  leave(): void {
    if (this.#work.aborted) return;
    this.#left = true;
    this.#work.abort(new Fault("internal_error", "The client closed the connection."));
  }

  /** The service ends the work: draining, a lost lease, a refused grant. */
  end(fault: Fault): void {
    this.#halted.abort(fault);
    this.#work.abort(fault);
  }

  granted(source: BillingSource): void {
    this.notes.source = source;
  }

  ended(ended: Ended): void {
    const { outcome, usage, firstPart_ms, errorCode, upstream, replica, tried, queued_ms } = ended;
    this.trace?.answered(ended);
    const { notes } = this;
    notes.outcome = outcome;
    notes.usage = usage;
    notes.attempts = tried;
    notes.queued_ms = queued_ms;
    if (firstPart_ms !== null) notes.firstPart_ms = firstPart_ms;
    if (upstream !== null) notes.upstream = upstream;
    if (replica !== null) notes.replica = replica;
    // What fails before its status was sent is thrown, and has its code from there.
    if (this.streaming && errorCode !== null) notes.code = errorCode;
  }

  /** What it ended with, whatever status its stream began with; 499 where the client went away. */
  endStatus(status: number): number {
    if (this.#left) return 499;
    const { code } = this.notes;
    return this.streaming && code !== undefined && code in faultCatalogue
      ? faultCatalogue[code as FaultCode].status
      : status;
  }

  /** Whether its body is so large that work on it takes turns. */
  get takesTurns(): boolean {
    return this.pause !== breather;
  }

  /** For a caller who is known: what carries a body may take long to arrive, and longer to be answered. */
  keepOpen(): void {
    this.#isKeptOpen = true;
    this.connection.keepOpen(true);
  }

  /**
   * Its answer is made: what it held is free again, and so is the connection. To be said before the last byte is written:
   * later, the runtime does not hear of it, and the connection would idle for ever.
   */
  answered(): void {
    this.#kept?.[Symbol.dispose]();
    this.#memory?.[Symbol.dispose]();
    this.#text?.[Symbol.dispose]();
    if (this.#isKeptOpen) this.connection.keepOpen(false);
    this.#isKeptOpen = false;
  }

  /** What it holds of the node's memory; nothing while its caller is unknown. */
  get memory(): Reservation | null {
    return this.#memory;
  }

  holds(memory: Reservation): void {
    this.#memory = memory;
    this.#text = memory.budget.reservation(memory.keyId);
  }

  /** Whether so many bytes more of its answer may be kept until that is made. */
  keepsText(bytes: number): boolean {
    return this.#text !== null && this.#text.growTo(this.#text.bytes + bytes) === null;
  }

  /** Until its answer is made, however it ends; whoever needs it no longer may let it go before. */
  keeps(kept: Disposable): void {
    this.#kept = kept;
  }

  elapsed_ms(): number {
    return performance.now() - this.started_ms;
  }
}
