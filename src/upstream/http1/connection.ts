/** A connection to an engine. It carries one exchange at a time, and says whether another may follow. */
import type { Socket } from "bun";
import { release } from "../../body/release.ts";
import type { Listening, Signal } from "../../time/cancellation.ts";
import type { Together } from "../../time/together.ts";
import { Exchange, type Line, type Reply } from "./exchange.ts";
import { MalformedResponse, type ResponseHead } from "./head.ts";

/** Why an exchange has no answer, or no whole one. */
export class ConnectionLost extends Error {
  override readonly name = "ConnectionLost";
  /** The connection had served before, and closed before any byte of this answer: the engine may not have read the request. */
  readonly isStale: boolean;

  constructor(cause: unknown, isStale: boolean) {
    super("the engine closed the connection", { cause });
    this.isStale = isStale;
  }
}

/** The whole, or its pieces, which are used up. */
export type RequestBody = string | Uint8Array[];

/** Who keeps the connections. */
export interface Owner {
  /** It may serve again. */
  freed(connection: Connection): void;
  closed(connection: Connection): void;
  soon: Together;
}

export class Connection implements Line {
  readonly #socket: Socket<object>;
  readonly #owner: Owner;
  #exchange: Exchange | null = null;
  #listening: Listening | null = null;
  /** Bytes that wait for the socket to drain. */
  #unsent: Uint8Array[] = [];
  #served = 0;
  #isClosed = false;
  /** How long the engine says that it keeps the connection open, in milliseconds; null where it doesn't say. */
  kept_ms: number | null = null;
  /** The end of an idle connection's time, on the clock of `performance`. */
  idleUntil_ms = 0;

  constructor(socket: Socket<object>, owner: Owner) {
    this.#socket = socket;
    this.#owner = owner;
    socket.data = this;
  }

  get isUsable(): boolean {
    return !this.#isClosed && this.#exchange === null;
  }

  /** Sends a request, head and body. Its answer fails with ConnectionLost, MalformedResponse or the reason of the signal. */
  ask(head: string, body: RequestBody, signal: Signal): Promise<Reply> {
    signal.throwIfAborted();
    const exchange = new Exchange(this);
    this.#exchange = exchange;
    this.#listening = signal.listen((reason) => this.#end(reason));
    if (typeof body === "string") this.#write(head + body);
    else {
      this.#unsent = [new TextEncoder().encode(head), ...body.splice(0)];
      this.drained();
    }
    return exchange.replied;
  }

  close(): void {
    this.#end(new Error("the connection is not needed any more"));
  }

  // What the exchange asks for.

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  soon(work: () => void): void {
    this.#owner.soon(work);
  }

  drop(): void {
    this.#end(new Error("nobody reads the answer"));
  }

  over({ keepsOpen, headers }: ResponseHead): void {
    this.#leave();
    this.#served += 1;
    // An engine that has answered before it had read the request reads the rest of it as the next.
    if (!keepsOpen || this.#unsent.length > 0 || this.#isClosed) {
      this.#end(null);
      return;
    }
    this.kept_ms = keptFor_ms(headers.get("keep-alive"));
    this.#owner.freed(this);
  }

  // What the socket tells.

  received(bytes: Uint8Array): void {
    try {
      // Bytes that nobody asked for: whatever they are, the next answer would be taken for another's.
      if (!this.#exchange) throw new MalformedResponse("there are bytes behind the end of the answer");
      this.#exchange.received(bytes);
    } catch (malformed) {
      this.#end(malformed);
    }
  }

  drained(): void {
    for (let next = this.#unsent[0]; next; next = this.#unsent[0]) {
      const sent = this.#socket.write(next);
      if (sent < 0) this.#deaf();
      else if (sent < next.length) this.#unsent[0] = next.subarray(sent);
      if (sent < next.length) return;
      this.#unsent.shift();
      // Pieces may be of one memory.
      if (!this.#unsent.some(({ buffer }) => buffer === next.buffer)) release(next);
    }
  }

  /** The engine has closed its side, orderly. */
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

  /** Writes head and body at once, because nearly every request is small. */
  #write(request: string): void {
    const sent = this.#socket.write(request);
    if (sent < 0) this.#deaf();
    else if (sent < request.length || sent < Buffer.byteLength(request))
      this.#unsent = [new TextEncoder().encode(request).subarray(sent)];
  }

  #deaf(): void {
    this.#lost(new Error("the connection does not take what is written"));
  }

  /** Leaves the request: its end does not concern this connection any more. */
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

function keptFor_ms(keepAlive: string | undefined): number | null {
  const seconds = keepAlive === undefined ? undefined : /(?:^|[\s,])timeout=(\d{1,6})/.exec(keepAlive)?.[1];
  return seconds === undefined ? null : Number(seconds) * 1000;
}
