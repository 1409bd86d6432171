/** Runs repeated work: at intervals, or once for all who request it. Keeps no process alive. */
import { alignedClock, type Clock, idleClock } from "./clock.ts";

interface Gathered {
  /** Requests a run after this time, unless one is due or running already. */
  ask(wait_ms: number): void;
  /** Stops, and resolves when nothing runs. */
  stop(): Promise<void>;
}

/**
 * Runs work that is requested often: once for all requests, and never twice at a time. `work` must not reject. It
 * returns the time until the next run, or null if nothing is left to do.
 */
export function gathered(work: () => Promise<number | null>, clock: Pick<Clock, "after"> = idleClock()): Gathered {
  let cancel: (() => void) | null = null;
  let running: Promise<void> | null = null;
  let isStopped = false;

  function ask(wait_ms: number): void {
    if (cancel || running || isStopped) return;
    cancel = clock.after(wait_ms, () => {
      cancel = null;
      running = run();
    });
  }

  async function run(): Promise<void> {
    const again_ms = await work();
    running = null;
    if (again_ms !== null) ask(again_ms);
  }

  return {
    ask,
    async stop() {
      isStopped = true;
      cancel?.();
      await running;
    },
  };
}

export type Repeating = Pick<Gathered, "stop">;

/**
 * Runs work at intervals, never twice at a time. `work` must not reject. The wait begins at its end; the first wait may
 * differ. If `every` is a function, it is called for each wait. Work that needs its exact instant passes another clock.
 */
export function repeating(
  work: () => Promise<void>,
  { first, every }: { first?: number; every: number | (() => number) },
  clock: Pick<Clock, "after"> = alignedClock(),
): Repeating {
  const wait_ms = typeof every === "number" ? () => every : every;
  const runs = gathered(async () => {
    await work();
    return wait_ms();
  }, clock);
  runs.ask(first ?? wait_ms());
  return { stop: runs.stop };
}

/**
 * A set whose members come and go often, in place of a Set. When a Set grows, its old table stays behind with all its
 * members and points to the next one. Once a full collection has found a table, the quick ones find all that follow, so
 * members that have left are kept until the next full collection: docs/design/runtime.md, Bun as a server.
 */
export class Present<Member> {
  readonly #places: PresentEntry<Member>[] = [];

  get size(): number {
    return this.#places.length;
  }

  /** All current members, in no particular order. */
  members(): Member[] {
    return this.#places.map(({ member }) => member);
  }

  enter(member: Member): PresentEntry<Member> {
    const place = { member, at: this.#places.length };
    this.#places.push(place);
    return place;
  }

  /** Removes a member. Does nothing if it has left already. */
  leave(place: PresentEntry<Member>): void {
    if (this.#places[place.at] !== place) return;
    const last = this.#places.pop()!;
    if (last === place) return;
    last.at = place.at;
    this.#places[place.at] = last;
  }
}

/** A member's entry, from `enter` to `leave`. */
export interface PresentEntry<Member> {
  readonly member: Member;
  at: number;
}
