/**
 * A token bucket, which fills up at a steady rate: it lets a burst pass, and then a steady number a second. Pure:
 * instants are arguments, in monotonic milliseconds.
 */
export interface BucketSize {
  burst: number;
  per_second: number;
}

export class Bucket {
  readonly #size: BucketSize;
  #tokens: number;
  #at_ms: number;

  constructor(size: BucketSize, now_ms: number) {
    this.#size = size;
    this.#tokens = size.burst;
    this.#at_ms = now_ms;
  }

  take(now_ms: number): boolean {
    if (this.tokens(now_ms) < 1) return false;
    this.#tokens--;
    return true;
  }

  giveBack(): void {
    this.#tokens++;
  }

  /** Takes tokens, even more than the bucket has. The next token is then available later. */
  spend(tokens: number, now_ms: number): void {
    this.#tokens = this.tokens(now_ms) - tokens;
  }

  tokens(now_ms: number): number {
    const { burst, per_second } = this.#size;
    const passed_ms = Math.max(0, now_ms - this.#at_ms);
    this.#tokens = Math.min(burst, this.#tokens + (passed_ms * per_second) / 1000);
    this.#at_ms = Math.max(now_ms, this.#at_ms);
    return this.#tokens;
  }

  /** The whole seconds until there is a token; at least 1. */
  waitSeconds(now_ms: number): number {
    return Math.max(1, Math.ceil((1 - this.tokens(now_ms)) / this.#size.per_second));
  }
}
