/**
 * Measures how late this process's timers are: a duration that was measured while the process itself stood still says
 * nothing about others.
 */
import { type Clock, idleClock } from "../core/time/clock.ts";

const beat_ms = 100;
/** A timer that is late by less than this counts as punctual. */
const punctual_ms = 20;

export class Lateness {
  readonly #clock: Clock;
  readonly #told: (late_ms: number) => void;
  #due_ms = 0;
  #past_ms = 0;
  #cancel: () => void = () => {};

  /** Begins to measure. `told`: called at each beat, some ten times a second, with how late its timer was. */
  constructor(clock: Clock = idleClock(), told: (late_ms: number) => void = () => {}) {
    this.#clock = clock;
    this.#told = told;
    this.#beat();
  }

  /** The sum of all lateness since the start. The difference of two readings is the lateness between them. */
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
    // Beats are at the instants of other repeated work (`alignedClock`), so that they share a wake-up.
    this.#due_ms = (Math.floor(now_ms / beat_ms) + 1) * beat_ms;
    this.#cancel = this.#clock.after(Math.ceil(this.#due_ms - now_ms), () => {
      this.#past_ms += this.#now_ms();
      this.#told(Math.max(0, this.#clock.now_ms() - this.#due_ms));
      this.#beat();
    });
  }
}
