/** A connection to an engine. It carries one exchange at a time, and reports whether another one may follow. */
import type { Socket } from "bun";
import { release } from "../../body/pieces.ts";
import type { Listening, Signal } from "../../time/cancellation.ts";
import { type Turns, yieldToEventLoop } from "../../time/turns.ts";
import { Exchange, type Reply } from "./exchange.ts";
import { headed, keptFor_ms, type RequestBody, type ResponseHead, saysThatItCloses } from "./head.ts";
import type { Line, Pause, PausedLine, ReadPauses, SocketCalls } from "./read-pauses.ts";

/** Thrown if an exchange has no answer, or only a part of one. */
export class ConnectionLost extends Error {
  override readonly name = "ConnectionLost";
  /**
   * Whether the connection had been used before and closed before the first byte of this answer. The engine may not
   * have read the request.
   */
  readonly isStale: boolean;

  constructor(cause: unknown, isStale: boolean) {
    super("the engine closed the connection", { cause });
    this.isStale = isStale;
  }
}

/** The object to which a connection reports that it has ended, or that it may be reused. */
export interface Owner {
  /** Called when the connection may carry another exchange. */
  freed(connection: EngineConnection): void;
  closed(connection: EngineConnection): void;
  /** Called when the engine has sent more than the answer to a request. None of its connections may be reused. */
  strayed(): void;
  turns: Turns;
  pauses: ReadPauses;
  calls: SocketCalls;
}

/** The number of turns of the event loop that pass until a resumed socket has been read. */
const readOut_turns = 2;

export class EngineConnection implements Line, PausedLine {
  readonly #socket: Socket<object>;
  readonly #owner: Owner;
  #exchange: Exchange | null = null;
  #listening: Listening | null = null;
  #unsent: Uint8Array[] = [];
  #served = 0;
  #isClosed = false;
  /** Whether the exchange holds the engine back, so that the socket is not read. */
  #isHeld = false;
  /** The pause after the last read. It lasts until the reader has taken what was read. */
  #pause: Pause | null = null;
  /** Whether the pause should have ended, but continues because the reader has not had its turn. */
  #isOverdue = false;
  /** How long the engine promises to keep the connection open, in milliseconds; null if it does not say. */
  kept_ms: number | null = null;
  /** When the connection is closed if it stays idle, on the clock of `performance`. */
  idleUntil_ms = 0;
  /**
   * The key of the callers whose requests the connection may carry after its first request; null: it carries no other
   * request.
   */
  sharer: string | null = null;

  constructor(socket: Socket<object>, owner: Owner) {
    this.#socket = socket;
    this.#owner = owner;
    socket.data = this;
  }

  /**
   * Whether a request may be sent on the connection. False if the engine has already sent bytes, which would be read as
   * the answer.
   */
  get isUsable(): boolean {
    return !this.#isClosed && this.#exchange === null && !this.#owner.calls.hasUnread(this.#socket);
  }

  /** Sends a request, head and body. Its answer fails with ConnectionLost, MalformedResponse or the reason of the signal. */
  ask(head: string, body: RequestBody, signal: Signal): Promise<Reply> {
    signal.throwIfAborted();
    const exchange = new Exchange(this);
    this.#exchange = exchange;
    this.#listening = signal.listen((reason) => this.#stop(reason));
    if (typeof body === "string") this.#write(head + body);
    else {
      this.#unsent = headed(head, body.splice(0));
      this.drained();
    }
    return exchange.replied;
  }

  close(): void {
    this.#end(new Error("the connection is not needed any more"));
  }

  // Methods that the exchange calls.

  get pause_ms(): number {
    return this.#owner.pauses.window_ms;
  }

  pause(): void {
    this.#isHeld = true;
    this.#socket.pause();
  }

  resume(): void {
    this.#isHeld = false;
    if (!this.#pause) this.#socket.resume();
  }

  soon(work: () => void, isUrgent: boolean): void {
    this.#owner.turns.soon(work, isUrgent);
  }

  taken(): void {
    if (this.#isOverdue) this.#endPause();
  }

  drop(): void {
    this.#end(new Error("nobody reads the answer"));
  }

  exceeded(): boolean {
    this.#owner.strayed();
    return this.#served === 0;
  }

  over({ keepsOpen, headers }: ResponseHead): void {
    this.#leave();
    if (this.#pause) this.#endPause();
    this.#served += 1;
    // If an engine answers before it has read the whole request, it would read the rest of this request as the next
    // one.
    if (!keepsOpen || this.#unsent.length > 0 || this.#isClosed) {
      this.#end(null);
      return;
    }
    this.kept_ms = keptFor_ms(headers.get("keep-alive"));
    this.#owner.freed(this);
  }

  // Events of the socket.

  received(bytes: Uint8Array): void {
    if (!this.#exchange) {
      this.#receivedUnasked(bytes);
      return;
    }
    try {
      this.#exchange.received(bytes);
      if (this.#exchange?.isFlowing) this.#pauseAfterRead();
    } catch (malformed) {
      this.#end(malformed);
    }
  }

  pauseOver(pause: Pause): void {
    if (pause !== this.#pause) return;
    // The process is too slow at the moment: bytes that are read now could only wait, and to read more of them together
    // later costs less.
    if (this.#exchange?.isDue) this.#isOverdue = true;
    else this.#endPause();
  }

  drained(): void {
    for (let next = this.#unsent[0]; next; next = this.#unsent[0]) {
      const sent = this.#socket.write(next);
      if (sent < 0) this.#deaf();
      else if (sent < next.length) this.#unsent[0] = next.subarray(sent);
      if (sent < next.length) return;
      this.#unsent.shift();
      // Several pieces may share one buffer.
      if (!this.#unsent.some(({ buffer }) => buffer === next.buffer)) release(next);
    }
  }

  /** Handles the end of the engine's side, which it has closed without an error. */
  ended(): void {
    try {
      this.#exchange?.closed();
      this.#end(null);
    } catch (cause) {
      this.#lost(cause);
    }
  }

  closed(cause: unknown): void {
    this.#lost(cause);
    this.#owner.closed(this);
  }

  #lost(cause: unknown): void {
    this.#end(new ConnectionLost(cause, this.#served > 0 && this.#exchange?.isBegun === false));
  }

  /**
   * Handles bytes that arrive while no request is outstanding: they would be taken for the next answer, so the
   * connection ends.
   */
  #receivedUnasked(bytes: Uint8Array): void {
    if (this.#isClosed) return;
    this.#end(null);
    if (!saysThatItCloses(bytes)) this.#owner.strayed();
  }

  /** Writes head and body in one call, because nearly every request is small. */
  #write(request: string): void {
    const sent = this.#socket.write(request);
    if (sent < 0) this.#deaf();
    else if (sent < request.length || sent < Buffer.byteLength(request))
      this.#unsent = [new TextEncoder().encode(request).subarray(sent)];
  }

  #deaf(): void {
    this.#lost(new Error("the connection does not take what is written"));
  }

  #pauseAfterRead(): void {
    // `??=` because a TLS socket reports several records of one read, each by itself.
    this.#pause ??= this.#owner.pauses.begin(this);
    if (this.#pause) this.#socket.pause();
  }

  #endPause(): void {
    this.#pause = null;
    this.#isOverdue = false;
    if (!this.#isHeld && !this.#isClosed) this.#socket.resume();
  }

  /**
   * Ends the exchange for this reason. Bytes of a stream that the system has received by now, during a pause or while
   * this process was late, are read first, because the engine sent them before the end.
   */
  #stop(reason: unknown): void {
    const exchange = this.#exchange;
    if (!exchange?.isFlowing) {
      this.#end(reason);
      return;
    }
    exchange.last();
    if (this.#pause) this.#endPause();
    void this.#endAfterReading(exchange, reason);
  }

  async #endAfterReading(exchange: Exchange, reason: unknown): Promise<void> {
    for (let turn = 0; turn < readOut_turns; turn++) await yieldToEventLoop();
    // The answer may have ended in the meantime, so that the connection carries another exchange.
    if (this.#exchange === exchange) this.#end(reason);
  }

  /** Detaches the exchange from the connection, and returns it. */
  #leave(): Exchange | null {
    const exchange = this.#exchange;
    this.#exchange = null;
    this.#listening?.stop();
    this.#listening = null;
    return exchange;
  }

  #end(cause: unknown): void {
    const exchange = this.#leave();
    this.#unsent = [];
    if (!this.#isClosed) {
      this.#isClosed = true;
      this.#socket.terminate();
    }
    exchange?.fail(cause);
  }
}
