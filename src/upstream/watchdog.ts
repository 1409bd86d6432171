/** One timer for all waits of a request: moving the deadline later costs an assignment, not a new timer. */
export class Watchdog {
  readonly #bark: (waitedFor: string) => void;
  #deadline = Number.POSITIVE_INFINITY;
  #what = "";
  #last = Number.POSITIVE_INFINITY;
  #lastWhat = "";
  #timer: ReturnType<typeof setTimeout> | undefined;
  #fires = Number.POSITIVE_INFINITY;

  constructor(bark: (waitedFor: string) => void) {
    this.#bark = bark;
  }

  /** The next thing must come within `ms` from now. */
  expect(ms: number, waitingFor: string): void {
    this.#deadline = performance.now() + ms;
    this.#what = waitingFor;
    this.#arm();
  }

  /** All of it must be over within `ms` from now; watched from when something is expected: one timer, not two. */
  limit(ms: number, waitingFor: string): void {
    this.#last = performance.now() + ms;
    this.#lastWhat = waitingFor;
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #arm(): void {
    const due = Math.min(this.#deadline, this.#last);
    if (due >= this.#fires) return;
    clearTimeout(this.#timer);
    this.#fires = due;
    this.#timer = setTimeout(() => this.#check(), Math.max(0, due - performance.now()));
  }

  #check(): void {
    this.#fires = Number.POSITIVE_INFINITY;
    const now = performance.now();
    if (now >= this.#last) this.#bark(this.#lastWhat);
    else if (now >= this.#deadline) this.#bark(this.#what);
    else this.#arm();
  }
}
