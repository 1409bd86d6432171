/** A connection to an engine. It carries one exchange at a time, and says whether another may follow. */
import type { Socket } from "bun";
import { Exchange, type Reply } from "./exchange.ts";
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

/** Who keeps the connections. */
export interface Owner {
  /** It may serve again. */
  freed(connection: Connection): void;
  closed(connection: Connection): void;
}

export class Connection {
  readonly #socket: Socket<Connection | null>;
  readonly #owner: Owner;
  #exchange: Exchange | null = null;
  #unsent: Uint8Array | null = null;
  #served = 0;
  #isClosed = false;
  /** How long the engine says that it keeps the connection open, in milliseconds; null where it doesn't say. */
  kept_ms: number | null = null;
  /** Of an idle one, on the clock of `performance`. */
  idleUntil_ms = 0;

  constructor(socket: Socket<Connection | null>, owner: Owner) {
    this.#socket = socket;
    this.#owner = owner;
    socket.data = this;
  }

  get isUsable(): boolean {
    return !this.#isClosed && this.#exchange === null;
  }

  /** Sends a request, head and body. Its answer fails with ConnectionLost, MalformedResponse or the reason of the signal. */
  async ask(head: string, body: string, signal: AbortSignal): Promise<Reply> {
    signal.throwIfAborted();
    const abort = () => this.#end(signal.reason);
    const exchange = new Exchange({
      pause: () => void this.#socket.pause(),
      resume: () => void this.#socket.resume(),
      drop: () => this.#end(new Error("nobody reads the answer")),
      over: (head) => {
        signal.removeEventListener("abort", abort);
        this.#over(head);
      },
    });
    this.#exchange = exchange;
    signal.addEventListener("abort", abort, { once: true });
    exchange.failed = () => signal.removeEventListener("abort", abort);
    const request = head + body;
    const sent = this.#socket.write(request);
    if (sent < request.length || sent < Buffer.byteLength(request)) this.#sent(Buffer.from(request), sent);
    return exchange.replied;
  }

  close(): void {
    this.#end(new Error("the connection is not needed any more"));
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
    if (this.#unsent) this.#sent(this.#unsent, this.#socket.write(this.#unsent));
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

  /** What did not go out waits for the socket to drain. */
  #sent(bytes: Uint8Array, sent: number): void {
    if (sent < 0) this.#lost(new Error("the connection does not take what is written"));
    else this.#unsent = sent < bytes.length ? bytes.subarray(sent) : null;
  }

  #over({ keepsOpen, headers }: ResponseHead): void {
    this.#exchange = null;
    this.#served += 1;
    // An engine that has answered before it had read the request reads the rest of it as the next.
    if (!keepsOpen || this.#unsent || this.#isClosed) {
      this.#end(null);
      return;
    }
    const seconds = /(?:^|[\s,])timeout=(\d{1,6})/.exec(headers.get("keep-alive") ?? "")?.[1];
    this.kept_ms = seconds === undefined ? null : Number(seconds) * 1000;
    this.#owner.freed(this);
  }

  #end(cause: unknown): void {
    const exchange = this.#exchange;
    this.#exchange = null;
    this.#unsent = null;
    if (!this.#isClosed) {
      this.#isClosed = true;
      this.#socket.terminate();
    }
    exchange?.fail(cause);
  }
}
