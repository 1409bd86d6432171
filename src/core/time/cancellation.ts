/**
 * Ends work early, with a reason. Does what AbortController and AbortSignal do, without their events: those are native
 * objects, of which a request would make about thirty. They are used where the runtime asks for them: a request's
 * client, `fetch`. docs/design/runtime.md, Bun as a server.
 */

import { idleClock } from "./clock.ts";
import { Countdown } from "./deadline.ts";

/** The side that the cancelled work sees. */
export interface Signal {
  readonly aborted: boolean;
  /** The reason of the abort; undefined before it. */
  readonly reason: unknown;
  /** Throws the reason if it was aborted. */
  throwIfAborted(): void;
  /**
   * Calls the listener once, in the order of registration; at once if it was aborted already. An error in a listener
   * does not reach the others.
   */
  listen(tell: (reason: unknown) => void): Listening;
  /** A cancellation that is aborted with this one, or before. */
  child(): Cancellation;
}

export interface Listening {
  /** Removes the listener. Does nothing after the abort. */
  stop(): void;
}

const nobody = () => {};
const idle = idleClock();

export class Cancellation implements Signal {
  /** The ring of listeners, from the first (`after`) to the last (`before`). */
  readonly #ring = new Link(nobody);
  #parent: Listening | null = null;
  #isAborted = false;
  #reason: unknown;

  /** A signal that is aborted after this time. Its timer keeps no process alive. */
  static timeout(ms: number): Signal {
    const cancellation = new Cancellation();
    new Countdown(() => cancellation.abort(new Error(`not done within ${ms} ms`)), idle).set(ms);
    return cancellation;
  }

  get aborted(): boolean {
    return this.#isAborted;
  }

  get reason(): unknown {
    return this.#reason;
  }

  throwIfAborted(): void {
    if (this.#isAborted) throw this.#reason;
  }

  listen(tell: (reason: unknown) => void): Listening {
    const link = new Link(tell);
    if (this.#isAborted) link.told(this.#reason);
    else link.join(this.#ring);
    return link;
  }

  child(): Cancellation {
    const child = new Cancellation();
    child.#parent = this.listen((reason) => child.abort(reason));
    return child;
  }

  /** Aborts the work. Only the first call counts. */
  abort(reason: unknown): void {
    if (this.#isAborted) return;
    this.#isAborted = true;
    this.#reason = reason;
    this.detach();
    const ring = this.#ring;
    for (let next = ring.after; next !== ring; next = ring.after) {
      next.stop();
      next.told(reason);
    }
  }

  /** Detaches a child whose work is done, so that its parent keeps no reference to it. */
  detach(): void {
    this.#parent?.stop();
    this.#parent = null;
  }
}

class Link implements Listening {
  before: Link = this;
  after: Link = this;
  readonly #tell: (reason: unknown) => void;

  constructor(tell: (reason: unknown) => void) {
    this.#tell = tell;
  }

  /** Appends itself to the ring. */
  join(ring: Link): void {
    this.before = ring.before;
    this.after = ring;
    ring.before.after = this;
    ring.before = this;
  }

  /** A link that has left points to no other: the garbage collector would find those through it (present.ts). */
  stop(): void {
    this.before.after = this.after;
    this.after.before = this.before;
    this.before = this;
    this.after = this;
  }

  told(reason: unknown): void {
    try {
      this.#tell(reason);
    } catch (thrown) {
      reportError(thrown);
    }
  }
}
