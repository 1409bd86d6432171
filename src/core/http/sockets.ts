/** The WebSockets that are open: how many there may be, and their end when the node drains. */
import { Present } from "../time/clock.ts";

export interface SocketsLimits {
  /** The largest message of a socket, and the most bytes of conversations that a socket keeps. */
  frame_bytes_max: number;
  node_max: number;
  key_max: number;
}

export interface Retiring {
  /** Takes no further message, and closes the socket once running requests have their answers. */
  retire(): void;
}

export class Sockets {
  readonly #open = new Present<Retiring>();
  readonly #ofKeys = new Map<string, number>();
  #isRetiring = false;

  constructor(readonly limits: SocketsLimits) {}

  get size(): number {
    return this.#open.size;
  }

  /** Counts one more socket until the result is disposed of. Null if there are too many. */
  enter(keyId: string, socket: Retiring): Disposable | null {
    const { node_max, key_max } = this.limits;
    const ofKey = this.#ofKeys.get(keyId) ?? 0;
    if (this.#isRetiring || this.#open.size >= node_max || ofKey >= key_max) return null;
    this.#ofKeys.set(keyId, ofKey + 1);
    const place = this.#open.enter(socket);
    let isLeft = false;
    return {
      [Symbol.dispose]: () => {
        if (isLeft) return;
        isLeft = true;
        this.#open.leave(place);
        this.#left(keyId);
      },
    };
  }

  /** Drains: no socket is opened from now on, and open ones close when they are idle. */
  retire(): void {
    this.#isRetiring = true;
    for (const socket of this.#open.members()) socket.retire();
  }

  #left(keyId: string): void {
    const ofKey = this.#ofKeys.get(keyId) ?? 0;
    if (ofKey > 1) this.#ofKeys.set(keyId, ofKey - 1);
    else this.#ofKeys.delete(keyId);
  }
}
