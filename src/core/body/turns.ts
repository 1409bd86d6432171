/**
 * TURNS OF LARGE BODIES: work on large bodies runs in steps, one at a time on a node, and with a rest between two steps
 * if other requests wait. Keys take turns. Of one key's bodies the one that came first continues, so that few are half
 * done and held in memory: docs/design/service.md, Large bodies take turns.
 */
import { type Pause, small_bytes } from "../time/turns.ts";

interface TurnsClock {
  /** Monotonic milliseconds. */
  now_ms(): number;
  /** Runs the function once the sockets and timers that are due have had their turn. */
  soon(run: () => void): void;
  after(delay_ms: number, run: () => void): void;
}

interface Waiting {
  /** The number of the body on this node, in order of arrival. */
  number: number;
  go(): void;
}

/** While no other body waits, a body continues without a rest for this long. */
const stretch_ms = 2;

export class BodyTurns {
  /** The waiting bodies of each key; the key whose turn is next comes first. */
  readonly #waiting = new Map<string, Waiting[]>();
  readonly #clock: TurnsClock;
  #bodies = 0;
  /** The current step, or the rest after that step; null while no large body is worked on. */
  #step: { number: number; began_ms: number } | null = null;

  /** Makes the turns of a node. `othersWait`: whether any request without a large body waits for its answer. */
  constructor(
    readonly othersWait: () => boolean,
    clock: TurnsClock = systemTurnsClock,
  ) {
    this.#clock = clock;
  }

  /** The pauses between the steps of one body. Each ends when the next step may begin. */
  ofBody(keyId: string): Pause {
    this.#bodies += 1;
    const number = this.#bodies;
    return (bytes) => (bytes > small_bytes ? this.#turn(keyId, number) : undefined);
  }

  #turn(keyId: string, number: number): Promise<void> | undefined {
    if (this.#step === null) {
      this.#begin(number);
      return undefined;
    }
    if (this.#goesOn(this.#step, number)) return undefined;
    const { promise, resolve } = Promise.withResolvers<void>();
    const line = this.#waiting.get(keyId) ?? [];
    const later = line.findIndex((one) => one.number > number);
    line.splice(later === -1 ? line.length : later, 0, { number, go: resolve });
    this.#waiting.set(keyId, line);
    return promise;
  }

  #goesOn(step: { number: number; began_ms: number }, number: number): boolean {
    const isAlone = step.number === number && this.#waiting.size === 0;
    return isAlone && this.#clock.now_ms() - step.began_ms < stretch_ms;
  }

  /**
   * Begins a step. If other requests wait, the step is followed by a rest of the same length, so that they get half of
   * the node's time.
   */
  #begin(number: number): void {
    const began_ms = this.#clock.now_ms();
    this.#step = { number, began_ms };
    this.#clock.soon(() => {
      if (this.othersWait()) this.#clock.after(this.#clock.now_ms() - began_ms, () => this.#next());
      else this.#next();
    });
  }

  #next(): void {
    const [next] = this.#waiting;
    if (!next) {
      this.#step = null;
      return;
    }
    const [keyId, line] = next;
    const first = line.shift()!;
    this.#waiting.delete(keyId);
    if (line.length > 0) this.#waiting.set(keyId, line);
    this.#begin(first.number);
    first.go();
  }
}

const systemTurnsClock: TurnsClock = {
  now_ms: () => performance.now(),
  soon: (run) => void setImmediate(run),
  after: (delay_ms, run) => void setTimeout(run, delay_ms),
};
