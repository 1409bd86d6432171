/**
 * Decides how long the sockets of engines are paused after a read. There are few levels, which change slowly: a pause
 * that followed the load in proportion would change the load that it follows, and oscillate. Pure.
 */

const levels_ms = [25, 50, 100];

export interface PauseBounds {
  /** The pause of a process that is not busy. */
  shortest_ms: number;
  longest_ms: number;
}

/** Above this share of a core, after this time, the next longer pause is used. */
const high = 0.8;
const up_ms = 500;
/** Below this share of a core, after this time, the next shorter pause is used. */
const low = 0.4;
const down_ms = 3000;

export class PauseLevel {
  readonly #steps_ms: readonly number[];
  #at = 0;
  #high_ms = 0;
  #low_ms = 0;

  constructor({ shortest_ms, longest_ms }: PauseBounds) {
    const between = levels_ms.filter((ms) => ms > shortest_ms && ms < longest_ms);
    this.#steps_ms = longest_ms > shortest_ms ? [shortest_ms, ...between, longest_ms] : [longest_ms];
  }

  get window_ms(): number {
    return this.#steps_ms[this.#at]!;
  }

  /** Records that the process wanted a core for `busy_ms` of the last `elapsed_ms`. */
  observed(elapsed_ms: number, busy_ms: number): void {
    const share = busy_ms / elapsed_ms;
    this.#high_ms = share > high ? this.#high_ms + elapsed_ms : 0;
    this.#low_ms = share < low ? this.#low_ms + elapsed_ms : 0;
    if (this.#high_ms >= up_ms) this.#move(1);
    else if (this.#low_ms >= down_ms) this.#move(-1);
  }

  #move(by: number): void {
    this.#at = Math.min(this.#steps_ms.length - 1, Math.max(0, this.#at + by));
    this.#high_ms = 0;
    this.#low_ms = 0;
  }
}
