/** Measures how late this process runs: a time measured while it stood still says nothing about others. */
import { type Clock, idleClock } from "./clock.ts";

const beat_ms = 100;
/** A timer is never exact to the millisecond. */
const punctual_ms = 20;

export class Lateness {
  readonly #clock: Clock;
  #due_ms = 0;
  #past_ms = 0;
  #cancel: () => void = () => {};

  constructor(clock: Clock = idleClock()) {
    this.#clock = clock;
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
    this.#due_ms = this.#clock.now_ms() + beat_ms;
    this.#cancel = this.#clock.after(beat_ms, () => {
      this.#past_ms += this.#now_ms();
      this.#beat();
    });
  }
}
