/**
 * MEMORY IN FLIGHT: counts the bytes that the requests of a node hold together, and those of each key. Code that is
 * about to hold bytes reserves them first, and a request's reservation ends with the request: docs/design/service.md,
 * Memory in flight. Pure.
 */
interface MemoryLimits {
  node_bytes_max: number;
  key_bytes_max: number;
}

/** The budget that is full: the share of the key, the budget of the node, or that of the whole process. */
export type Shortage = "key" | "node" | "process";

export class MemoryBudget {
  readonly #ofKeys = new Map<string, number>();
  #bytes = 0;

  /**
   * `isHigh`: whether the process is above its high-water mark. `ended` is called with the bytes that each request
   * gives back.
   */
  constructor(
    readonly limits: MemoryLimits,
    readonly isHigh: () => boolean,
    readonly ended: (bytes: number) => void = () => {},
  ) {}

  get bytes(): number {
    return this.#bytes;
  }

  reservation(keyId: string): MemoryReservation {
    return new MemoryReservation(this, keyId);
  }

  /**
   * The budget that `bytes` more would exceed; null if they exceed none. A request that runs alone never exceeds one.
   */
  shortage(keyId: string, bytes: number, own: number): Shortage | null {
    const { node_bytes_max, key_bytes_max } = this.limits;
    if (this.#bytes === own) return null;
    const ofKey = this.#ofKeys.get(keyId) ?? 0;
    if (ofKey > own && ofKey + bytes > key_bytes_max) return "key";
    if (this.#bytes + bytes > node_bytes_max) return "node";
    return this.isHigh() ? "process" : null;
  }

  /** Called only by `MemoryReservation`. */
  add(keyId: string, bytes: number): void {
    this.#bytes += bytes;
    const ofKey = (this.#ofKeys.get(keyId) ?? 0) + bytes;
    if (ofKey > 0) this.#ofKeys.set(keyId, ofKey);
    else this.#ofKeys.delete(keyId);
  }
}

export class MemoryReservation {
  /** All bytes that the request holds, the answer's included. */
  #bytes = 0;
  #answer_bytes = 0;
  /** Whether the request has ended. The rest of its work may still ask for memory, which nobody would give back. */
  #isOver = false;

  constructor(
    readonly budget: MemoryBudget,
    readonly keyId: string,
  ) {}

  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Reserves at least this many bytes, apart from the answer. If they don't fit, the reservation is unchanged, and the
   * full budget is returned.
   */
  growTo(bytes: number): Shortage | null {
    return this.#grow(bytes - (this.#bytes - this.#answer_bytes));
  }

  /** Gives back everything beyond this many bytes, apart from the answer. */
  shrinkTo(bytes: number): void {
    this.#shrink(this.#bytes - this.#answer_bytes - bytes);
  }

  /**
   * Reserves this many bytes for an engine's answer, in place of those reserved for it before. Fails in the same way as
   * `growTo`.
   */
  answerTo(bytes: number): Shortage | null {
    const more = bytes - this.#answer_bytes;
    const shortage = this.#grow(more);
    if (shortage) return shortage;
    this.#answer_bytes = bytes;
    this.#shrink(-more);
    return null;
  }

  [Symbol.dispose](): void {
    this.#answer_bytes = 0;
    this.shrinkTo(0);
    this.#isOver = true;
  }

  #grow(more: number): Shortage | null {
    if (more <= 0 || this.#isOver) return null;
    const shortage = this.budget.shortage(this.keyId, more, this.#bytes);
    if (shortage === null) this.#hold(more);
    return shortage;
  }

  #shrink(less: number): void {
    if (less <= 0 || this.#isOver) return;
    this.#hold(-less);
    this.budget.ended(less);
  }

  #hold(bytes: number): void {
    this.#bytes += bytes;
    this.budget.add(this.keyId, bytes);
  }
}
