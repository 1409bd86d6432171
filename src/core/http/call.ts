/** One HTTP request on its way through the service: its caller, its start, and the signal that ends its work. */

import type { MemoryReservation } from "../body/memory.ts";
import { Fault, type FaultCode, faultCatalogue } from "../inference/fault.ts";
import type { BillingSource } from "../store/ledger.ts";
import { Cancellation, type Signal } from "../time/cancellation.ts";
import { type Pause, yieldFor } from "../time/turns.ts";
import type { Caller, Ended } from "../usage/record.ts";
import type { RequestTrace } from "../usage/traces.ts";
import type { CallNotes } from "./call-notes.ts";
import type { Socket } from "./socket.ts";

export interface ClientConnection {
  /** The client's address, as far as the proxies in front are trusted (bounds.ts). */
  address(): string;
  isLocal(): boolean;
  /** Lifts the runtime's own idle timeout, which would cut a quiet stream, or sets it again. */
  keepOpen(isKept: boolean): void;
  /** Makes the connection a WebSocket. False if the request does not ask for one in the proper form. */
  upgrade?(socket: Socket, requestId: string): boolean;
}

export class Call implements Caller {
  readonly started_ms = performance.now();
  /** The client's address, kept because the runtime forgets it with the connection. */
  readonly client: string;
  readonly #notes: CallNotes = {};
  readonly #work = new Cancellation();
  readonly #halted = new Cancellation();
  /**
   * The parts of the request's work that end when the request ends. An array takes a microsecond less than an
   * AsyncDisposableStack.
   */
  readonly #begun: (AsyncDisposable | Disposable)[] = [];
  #pause: Pause = yieldFor;
  #trace: RequestTrace | null = null;
  #isStreaming = false;
  #isBodyRead = false;
  #left = false;
  #isCancelled = false;
  #isKeptOpen = false;
  #headers: Readonly<Record<string, string>> = {};
  /** The error code with which the inference run ended; null if it ended without an error. */
  #runCode: string | null = null;
  #memory: MemoryReservation | null = null;
  /** The reserved memory of the answer's text, which is kept until the answer is complete. */
  #text: MemoryReservation | null = null;

  constructor(
    /** The id of the request: `req_` + UUIDv7 hex, made here and never the client's. */
    readonly requestId: string,
    readonly request: Request,
    /** The path of the route that matched (`/v1/models/{id}`), for logs and metrics. */
    readonly route: string,
    readonly connection: ClientConnection,
  ) {
    this.client = connection.address();
  }

  get notes(): Readonly<CallNotes> {
    return this.#notes;
  }

  get trace(): RequestTrace | null {
    return this.#trace;
  }

  /** Aborted when the work of this request ends, with the Fault that ended it as its reason. */
  get signal(): Signal {
    return this.#work;
  }

  /** As `signal`, but not aborted when the client leaves. */
  get halted(): Signal {
    return this.#halted;
  }

  get left(): boolean {
    return this.#left;
  }

  get isCancelled(): boolean {
    return this.#isCancelled;
  }

  /** Whether the status was sent and the answer continues. */
  get isStreaming(): boolean {
    return this.#isStreaming;
  }

  get isBodyRead(): boolean {
    return this.#isBodyRead;
  }

  get pause(): Pause {
    return this.#pause;
  }

  /** Whether the body is large, so that work on it takes turns with others. */
  get takesTurns(): boolean {
    return this.#pause !== yieldFor;
  }

  traced(trace: RequestTrace | null): void {
    this.#trace = trace;
  }

  identified(who: Pick<CallNotes, "organization" | "key" | "operator" | "person">): void {
    const { organization, key, operator, person } = who;
    if (organization !== undefined) this.#notes.organization = organization;
    if (key !== undefined) this.#notes.key = key;
    if (operator !== undefined) this.#notes.operator = operator;
    if (person !== undefined) this.#notes.person = person;
    if (organization !== undefined && key !== undefined) this.#trace?.identified({ organization, key });
  }

  requested({ model, stream }: Pick<CallNotes, "model" | "stream">): void {
    if (model !== undefined) this.#notes.model = model;
    if (stream !== undefined) this.#notes.stream = stream;
  }

  /** The headers that the answer has in any case, errors too: those about the retirement of the requested model. */
  get headers(): Readonly<Record<string, string>> {
    return this.#headers;
  }

  announces(headers: Readonly<Record<string, string>>): void {
    this.#headers = headers;
  }

  bodyRead(): void {
    this.#isBodyRead = true;
  }

  /** Lets the work on the body take turns with the work on other requests' bodies: each step waits for this pause. */
  takeTurns(pause: Pause): void {
    this.#pause = pause;
  }

  /** From now on the client's departure ends the work. */
  watchClient(): void {
    const { signal } = this.request;
    if (signal.aborted) this.leave();
    else signal.onabort = () => this.leave();
  }

  /** Ends the work, because the client has left or wants no answer any more. */
  leave(reason = new Fault("internal_error", "The client closed the connection.")): void {
    if (this.#work.aborted) return;
    this.#left = true;
    this.#work.abort(reason);
  }

  /** Cancels the request because somebody other than its client asked for that. */
  cancel(): void {
    this.#isCancelled = true;
    this.leave(new Fault("internal_error", "The response was cancelled."));
  }

  /** Ends the work for a reason of the service: a drain, a lost lease or a refused grant. */
  end(fault: Fault): void {
    this.#halted.abort(fault);
    this.#work.abort(fault);
  }

  granted(source: BillingSource): void {
    this.#notes.source = source;
  }

  ended(ended: Ended): void {
    const { outcome, usage, firstPart_ms, errorCode, fault, upstream, replica, tried, queued_ms } = ended;
    this.#trace?.answered(ended);
    const notes = this.#notes;
    notes.outcome = outcome;
    notes.usage = usage;
    notes.attempts = tried;
    notes.queued_ms = queued_ms;
    if (firstPart_ms !== null) notes.firstPart_ms = firstPart_ms;
    if (upstream !== null) notes.upstream = upstream;
    if (replica !== null) notes.replica = replica;
    this.#runCode = errorCode;
    if (fault !== null && fault.status >= 500) notes.cause = fault.details.cause ?? fault;
  }

  /** Records the fault that is sent as the answer, or as the end of a stream. */
  failed(fault: Fault): void {
    this.#notes.code = fault.code;
    if (fault.status >= 500) this.#notes.cause = fault.details.cause ?? fault;
  }

  /**
   * Notes that the status was sent as the head of a stream. From then on frame.ts ends the request when its stream
   * closes.
   */
  streams(): void {
    this.#isStreaming = true;
  }

  /**
   * Adds a part of the request's work, which ends with the request if not before. The part that began last ends first.
   */
  begins<Begun extends AsyncDisposable | Disposable>(begun: Begun): Begun {
    this.#begun.push(begun);
    return begun;
  }

  /**
   * Ends each part of the request's work, even if another part throws. Returns a promise only if there are parts; it
   * resolves when all have ended.
   */
  finish(): Promise<void> | undefined {
    if (this.#begun.length > 0) return this.#endAll();
    // A failure before the status was sent is thrown instead, and its code is recorded where it is caught.
    if (this.#isStreaming && this.#runCode !== null) this.#notes.code = this.#runCode;
  }

  async #endAll(): Promise<void> {
    let failure: { thrown: unknown } | null = null;
    for (let last = this.#begun.pop(); last; last = this.#begun.pop()) {
      try {
        if (Symbol.asyncDispose in last) await last[Symbol.asyncDispose]();
        else last[Symbol.dispose]();
      } catch (thrown) {
        failure = { thrown };
      }
    }
    this.finish();
    if (failure) throw failure.thrown;
  }

  /** The final status: that of the failure if a stream failed after it began, and 499 if the client left. */
  endStatus(status: number): number {
    if (this.#left) return 499;
    const { code } = this.#notes;
    return this.#isStreaming && code !== undefined && code in faultCatalogue
      ? faultCatalogue[code as FaultCode].status
      : status;
  }

  /** Keeps the connection of a known caller open: the body may take long to arrive, and the answer longer. */
  keepOpen(): void {
    this.#isKeptOpen = true;
    this.connection.keepOpen(true);
  }

  /**
   * Releases the request's memory, and lets the runtime close the connection again when it is idle. Called before the
   * last byte is written: later, the runtime would not notice, and the connection would stay idle for ever.
   */
  answered(): void {
    this.#memory?.[Symbol.dispose]();
    this.#text?.[Symbol.dispose]();
    if (this.#isKeptOpen) this.connection.keepOpen(false);
    this.#isKeptOpen = false;
  }

  /** The reservation of the node's memory; null while the caller is unknown. */
  get memory(): MemoryReservation | null {
    return this.#memory;
  }

  holds(memory: MemoryReservation): void {
    this.#memory = memory;
    this.#text = memory.budget.reservation(memory.keyId);
  }

  keepsText(bytes: number): boolean {
    return this.#text !== null && this.#text.growTo(this.#text.bytes + bytes) === null;
  }

  elapsed_ms(): number {
    return performance.now() - this.started_ms;
  }
}
