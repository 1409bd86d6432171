/**
 * A deadline for an engine or a store. Time by which this process itself was late does not count; otherwise an engine
 * that has answered would be blamed for an event loop that stood still: docs/design/runtime.md, Deadlines.
 */
import { type Clock, systemClock } from "./clock.ts";

/** At least this share of the time counts however late the process was, so that a deadline comes in the end. */
const counted_min = 1 / 4;
/** The turns of the event loop in which arrived bytes are still read before the time is over. */
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

  /** The clock's time, less the time that does not count. */
  now_ms(): number {
    return this.#clock.now_ms() - this.#late_ms;
  }

  /** Sets the deadline to this long from now. */
  set(wait_ms: number): void {
    this.until(this.now_ms() + wait_ms);
  }

  /** Sets the deadline to this instant of `now_ms`. Moving it to later costs no timer. */
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
   * Waits in quarters of the remaining time, because a delay is noticed at the end of the quarter in which it happened.
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
   * Takes time off that does not count. A standstill that made a timer this late began before the timer was due: on
   * average as long before as it ended after.
   */
  #count(late_ms: number): void {
    const counted_ms = Math.max(this.#planned_ms * counted_min, this.#planned_ms - late_ms);
    this.#late_ms += this.#planned_ms + late_ms - counted_ms;
  }
}

/** The shortest quarter that is worth measuring. */
const quarter_ms_min = 5;

/**
 * The result of `work`; throws an Error that says that `what` did not answer if it takes longer than `wait_ms`, by a
 * deadline. The work itself is not stopped.
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
