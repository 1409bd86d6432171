/**
 * Shares one timer among all waits that end in the same millisecond. Otherwise thousands of streams would set a timer
 * for each of their tokens.
 */
export class Clock {
  readonly #slots = new Map<number, (() => void)[]>();

  /** Calls `wake` at this moment of `performance.now`. */
  at(due_ms: number, wake: () => void): void {
    const slot = Math.ceil(due_ms);
    const waiting = this.#slots.get(slot);
    if (waiting) {
      waiting.push(wake);
      return;
    }
    this.#slots.set(slot, [wake]);
    this.#arm(slot);
  }

  #arm(slot: number): void {
    // Timers fire up to a millisecond early, and cannot be set for more than 24 days ahead.
    const wait_ms = Math.min(Math.max(1, slot - performance.now() + 0.5), 1_000_000_000);
    const timer = setTimeout(() => (performance.now() < slot ? this.#arm(slot) : this.#ring(slot)), wait_ms);
    // A pending timer must not keep the process alive.
    timer.unref();
  }

  #ring(slot: number): void {
    const waiting = this.#slots.get(slot) ?? [];
    this.#slots.delete(slot);
    for (const wake of waiting) wake();
  }
}
