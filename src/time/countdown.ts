/**
 * How long whoever is asked may take. What this process itself was late does not count, or an engine that has answered would
 * be blamed for a loop that stood still: docs/design/runtime.md, Deadlines.
 */
import { type Clock, systemClock } from "./clock.ts";

/** A stretch in which the process stood still counts as so much of itself at least: a deadline comes in the end. */
const counted_min = 1 / 4;
/** Turns of the event loop in which what has arrived is read, before it is over. */
const looks = 4;

const system = systemClock();

export class Countdown {
  readonly #over: () => void;
  readonly #clock: Clock;
  #due_ms = Number.POSITIVE_INFINITY;
  #late_ms = 0;
  /** When the timer under way is due. */
  #fires_ms = Number.POSITIVE_INFINITY;
  #planned_ms = 0;
  #cancel: (() => void) | null = null;
  #looksLeft = looks;

  constructor(over: () => void, clock: Clock = system) {
    this.#over = over;
    this.#clock = clock;
  }

  /** The clock's time, less the time that did not count. */
  now_ms(): number {
    return this.#clock.now_ms() - this.#late_ms;
  }

  /** It is over so long from now, instead of when it was. */
  set(wait_ms: number): void {
    this.until(this.now_ms() + wait_ms);
  }

  /** The same, by `now_ms`. Later than it was, it costs no timer. */
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

  /** Waits in quarters of the rest: a delay within one of them is known at its end. */
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

  /** A stop that ended so late began before the timer was due: on average as long before as it ended after. */
  #count(late_ms: number): void {
    const counted_ms = Math.max(this.#planned_ms * counted_min, this.#planned_ms - late_ms);
    this.#late_ms += this.#planned_ms + late_ms - counted_ms;
  }
}

/** A shorter quarter is no measure of anything. */
const quarter_ms_min = 5;
