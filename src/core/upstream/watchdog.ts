/** One countdown for all waits of a request. Moving the deadline later costs an assignment, and no new timer. */
import { Countdown } from "../time/deadline.ts";

export class Watchdog {
  readonly #countdown: Countdown;
  #what = "";
  #last_ms = Number.POSITIVE_INFINITY;
  #lastWhat = "";

  constructor(bark: (waitedFor: string) => void) {
    this.#countdown = new Countdown(() => bark(this.#isLast() ? this.#lastWhat : this.#what));
  }

  /** Sets the deadline of the next part to `ms` from now. `waitingFor` names it in the error. */
  expect(ms: number, waitingFor: string): void {
    this.#what = waitingFor;
    this.#countdown.until(Math.min(this.#countdown.now_ms() + ms, this.#last_ms));
  }

  /**
   * Sets the deadline of the whole answer to `ms` from now. It is watched only while a part is expected, so that one
   * timer is enough.
   */
  limit(ms: number, waitingFor: string): void {
    this.#last_ms = this.#countdown.now_ms() + ms;
    this.#lastWhat = waitingFor;
  }

  stop(): void {
    this.#countdown.stop();
  }

  #isLast(): boolean {
    return this.#countdown.now_ms() >= this.#last_ms;
  }
}
