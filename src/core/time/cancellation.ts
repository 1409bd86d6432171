/**
 * Ends work early, with a reason. Does what AbortController and AbortSignal do, without their events: those are native
 * objects, of which a request would make about thirty. AbortSignals are used only where the runtime requires them: for
 * a request's client, and for `fetch`. docs/design/runtime.md, Memory.
 *
 * Also has a deadline for an engine or a store (`Countdown`). Time by which this process itself was late does not
 * count; otherwise an engine that has answered would be blamed for an event loop that stood still:
 * docs/design/runtime.md, Deadlines.
 */
import { type Clock, idleClock, systemClock } from "./clock.ts";

/**
 * At least this share of the time that a timer waited counts, however late the process was: otherwise a deadline might
 * never come.
 */
const counted_min = 1 / 4;
/**
 * When a deadline has come, the number of further turns of the event loop in which bytes that have already arrived are
 * read before the deadline counts as missed.
 */
const looks = 4;

const system = systemClock();

export class Countdown {
  readonly #over: () => void;
  readonly #clock: Clock;
  #due_ms = Number.POSITIVE_INFINITY;
  #late_ms = 0;
  /** The instant at which the current timer is due. */
  #fires_ms = Number.POSITIVE_INFINITY;
  #planned_ms = 0;
  #cancel: (() => void) | null = null;
  #looksLeft = looks;

  constructor(over: () => void, clock: Clock = system) {
    this.#over = over;
    this.#clock = clock;
  }

  /** The clock's time, less the time that does not count because this process was late. */
  now_ms(): number {
    return this.#clock.now_ms() - this.#late_ms;
  }

  set(wait_ms: number): void {
    this.until(this.now_ms() + wait_ms);
  }

  /** Sets the deadline to this instant, on the clock of `now_ms`. A postponed deadline needs no new timer. */
  until(due_ms: number): void {
    this.#due_ms = due_ms;
    this.#looksLeft = looks;
    if (due_ms + this.#late_ms < this.#fires_ms) this.#wait();
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = null;
    this.#fires_ms = Number.POSITIVE_INFINITY;
  }

  /**
   * Waits for a quarter of the remaining time and not for all of it, because a delay of this process is noticed only at
   * the end of the wait in which it happened.
   */
  #wait(): void {
    this.#cancel?.();
    this.#planned_ms = Math.max(0, this.#due_ms - this.now_ms()) / 4;
    if (this.#planned_ms < quarter_ms_min) this.#planned_ms *= 4;
    this.#fires_ms = this.#clock.now_ms() + this.#planned_ms;
    this.#cancel = this.#clock.after(this.#planned_ms, () => this.#look());
  }

  #look(): void {
    this.#count(Math.max(0, this.#clock.now_ms() - this.#fires_ms));
    this.#cancel = null;
    this.#fires_ms = Number.POSITIVE_INFINITY;
    if (this.now_ms() < this.#due_ms) this.#wait();
    else if (this.#looksLeft > 0) {
      this.#looksLeft -= 1;
      this.#planned_ms = 0;
      this.#fires_ms = this.#clock.now_ms();
      this.#cancel = this.#clock.after(0, () => this.#look());
    } else this.#over();
  }

  /**
   * Subtracts the time that does not count. `late_ms` is how late the timer was because the process stood still. The
   * standstill began before the timer was due, on average as long before as it ended after, so up to twice this time is
   * subtracted.
   */
  #count(late_ms: number): void {
    const counted_ms = Math.max(this.#planned_ms * counted_min, this.#planned_ms - late_ms);
    this.#late_ms += this.#planned_ms + late_ms - counted_ms;
  }
}

/** The shortest quarter of a remaining time that is worth a timer of its own. */
const quarter_ms_min = 5;

/**
 * Returns the result of `work`. If it takes longer than `wait_ms`, measured by a Countdown, throws an Error that says
 * that `what` did not answer. The work itself is not stopped.
 */
export async function within<T>(
  work: Promise<T>,
  wait_ms: number,
  what: string,
  late = (message: string): Error => new Error(message),
  clock?: Clock,
): Promise<T> {
  const silence = Promise.withResolvers<never>();
  const countdown = new Countdown(() => silence.reject(late(`${what} did not answer within ${wait_ms} ms`)), clock);
  countdown.set(wait_ms);
  try {
    return await Promise.race([work, silence.promise]);
  } finally {
    countdown.stop();
  }
}

/** The interface by which work learns that it is cancelled. */
export interface Signal {
  readonly aborted: boolean;
  /** The reason of the abort; undefined before it. */
  readonly reason: unknown;
  throwIfAborted(): void;
  /**
   * Calls the listener once, at the abort, in the order of registration; at once if the signal was aborted already. An
   * error in a listener does not keep the others from being called.
   */
  listen(tell: (reason: unknown) => void): Listening;
  /** A cancellation that is aborted when this signal is, or earlier by itself. */
  child(): Cancellation;
}

export interface Listening {
  /** Removes the listener. Does nothing after the abort. */
  stop(): void;
}

const nobody = () => {};
const idle = idleClock();

export class Cancellation implements Signal {
  /** The ring of listeners, from the first (`#ring.after`) to the last (`#ring.before`). */
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

  join(ring: Link): void {
    this.before = ring.before;
    this.after = ring;
    ring.before.after = this;
    ring.before = this;
  }

  /**
   * A link that was removed points to no other link. Otherwise the garbage collector would keep the links to which it
   * points (clock.ts).
   */
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
