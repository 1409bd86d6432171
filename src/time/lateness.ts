/** How late this process runs: what was measured while it stood still says nothing of whoever was asked. */
import { type Clock, idleClock } from "./clock.ts";

const beat_ms = 100;
/** A timer is never on time to the millisecond. */
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

  /** All that it was late since it began, what it is late just now included: two readings differ by what lies between. */
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
