/**
 * Ends work before it is done, and says why: what AbortController and AbortSignal do, without their events, which are native
 * objects of which a request would make some thirty. Theirs are for the runtime's own doors: a request's client, `fetch`.
 * docs/design/runtime.md, Bun as a server.
 */

import { idleClock } from "./clock.ts";
import { Countdown } from "./countdown.ts";

/** The side of work that may be cancelled. */
export interface Signal {
  readonly aborted: boolean;
  /** The reason of the abort; undefined before. */
  readonly reason: unknown;
  /** Throws the reason. */
  throwIfAborted(): void;
  /** Told once, in the order of asking; at once where it has ended already. What a listener throws is nobody else's concern. */
  listen(tell: (reason: unknown) => void): Listening;
  /** Ends with this one, and may end before. */
  child(): Cancellation;
}

export interface Listening {
  /** Stops listening. It does nothing after the abort. */
  stop(): void;
}

const nobody = () => {};
const idle = idleClock();

export class Cancellation implements Signal {
  /** Those who listen, from the first (`after`) to the last (`before`). */
  readonly #ring = new Link(nobody);
  #parent: Listening | null = null;
  #isAborted = false;
  #reason: unknown;

  /** Ends after so long; that keeps no process alive. */
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

  /** Aborts. Only the first reason counts. */
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

  /** A child's work is done: its parent keeps nothing of it. */
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

  /** One that has left points to none of the others: collections would find them through it (present.ts). */
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
