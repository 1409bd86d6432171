/** Measures how late this process runs: a time measured while it stood still says nothing about others. */
import { type Clock, idleClock } from "../core/time/clock.ts";

const beat_ms = 100;
/** A timer is never exact to the millisecond. */
const punctual_ms = 20;

export class Lateness {
  readonly #clock: Clock;
  readonly #told: (late_ms: number) => void;
  #due_ms = 0;
  #past_ms = 0;
  #cancel: () => void = () => {};

  /** `told` is called at each beat, some ten times a second, with how late its timer was. */
  constructor(clock: Clock = idleClock(), told: (late_ms: number) => void = () => {}) {
    this.#clock = clock;
    this.#told = told;
    this.#beat();
  }

  /**
   * All the time by which it has been late since the start, including now: the difference of two readings is the
   * lateness between them.
   */
  total_ms(): number {
    return this.#past_ms + this.#now_ms();
  }

  stop(): void {
    this.#cancel();
  }

  #now_ms(): number {
    const late_ms = this.#clock.now_ms() - this.#due_ms;
    return late_ms > punctual_ms ? late_ms : 0;
  }

  #beat(): void {
    const now_ms = this.#clock.now_ms();
    // At the instants of work that comes again and again (`alignedClock`), so that they share a wake.
    this.#due_ms = (Math.floor(now_ms / beat_ms) + 1) * beat_ms;
    this.#cancel = this.#clock.after(Math.ceil(this.#due_ms - now_ms), () => {
      this.#past_ms += this.#now_ms();
      this.#told(Math.max(0, this.#clock.now_ms() - this.#due_ms));
      this.#beat();
    });
  }
}
