/**
 * A client's WebSocket, on top of the runtime's: receives text messages, and sends them as fast as the client reads.
 */

export interface SocketOwner {
  opened(socket: Socket): void;
  received(text: string): void;
  closed(): void;
}

type RuntimeSocket = Bun.ServerWebSocket<Socket>;

export class Socket {
  readonly #owner: SocketOwner;
  #runtime: RuntimeSocket | null = null;
  /** Resolves when the client has read enough of what was sent; null if more may be sent now. */
  #room: PromiseWithResolvers<void> | null = null;

  constructor(owner: SocketOwner) {
    this.#owner = owner;
  }

  get isOpen(): boolean {
    return this.#runtime !== null;
  }

  /**
   * Sends a message once the client has read enough of the earlier ones. Resolves when the next may follow, or when the
   * connection is gone, in which case the message is dropped.
   */
  async send(text: string): Promise<void> {
    while (this.#room) await this.#room.promise;
    if (this.#runtime?.send(text) === buffered) this.#room ??= Promise.withResolvers();
    if (this.#room) await this.#room.promise;
  }

  /** Closes the socket, after a last message if there is one. Does not wait for a client that reads nothing. */
  end({ code, reason }: CloseReason, last?: string): void {
    if (last !== undefined) this.#runtime?.send(last);
    this.#runtime?.close(code, reason);
  }

  /** Called by the runtime, as are the next three methods. */
  opened(runtime: RuntimeSocket): void {
    this.#runtime = runtime;
    this.#owner.opened(this);
  }

  received(message: string | Uint8Array): void {
    if (typeof message === "string") this.#owner.received(message);
    else this.end(closeReasons.binary);
  }

  drained(): void {
    this.#room?.resolve();
    this.#room = null;
  }

  closed(): void {
    this.#runtime = null;
    this.drained();
    this.#owner.closed();
  }
}

/** The result of the runtime's `send` if the message waits for the client to read. */
const buffered = -1;

export interface CloseReason {
  code: number;
  reason: string;
}

/** Close codes of RFC 6455 and IANA's registry, with their reasons. */
export const closeReasons = {
  binary: { code: 1003, reason: "Send text messages." },
  refused: { code: 1008, reason: "The API key is not valid any more." },
  flooded: { code: 1008, reason: "Too many messages are unanswered." },
  restarting: { code: 1012, reason: "The service is restarting. Connect again." },
  old: { code: 1000, reason: "The connection has reached its age. Connect again." },
} as const satisfies Record<string, CloseReason>;

/**
 * How long a client may be silent before it is sent a ping. The ping also shows proxies in between that the connection
 * is in use.
 */
const silence_s = 60;

/**
 * Makes the runtime's handlers for WebSockets. `frame_bytes_max`: the largest message; a larger one closes its
 * connection with code 1009.
 */
export function socketHandlers(frame_bytes_max: number): Bun.WebSocketHandler<Socket> {
  return {
    maxPayloadLength: Math.max(1, frame_bytes_max),
    // The runtime has no limit at which it would drop messages: `send` waits instead.
    backpressureLimit: 0,
    perMessageDeflate: false,
    idleTimeout: silence_s,
    sendPings: true,
    open: (runtime) => runtime.data.opened(runtime),
    message: (runtime, message) => runtime.data.received(message),
    drain: (runtime) => runtime.data.drained(),
    close: (runtime) => runtime.data.closed(),
  };
}
