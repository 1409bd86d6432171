/**
 * Clocks, and repeated work: at intervals, or once for all who request it. Repeated work keeps no process alive.
 */

/** Time as a parameter, so that a node runs unchanged under a virtual clock. */
export interface Clock {
  /** Monotonic milliseconds; only differences have a meaning. */
  now_ms(): number;
  /** Runs the function once, after this time. Returns a function that cancels the run. */
  after(delay_ms: number, run: () => void): () => void;
}

export function passed(clock: Pick<Clock, "after">, delay_ms: number): Promise<void> {
  return new Promise((resolve) => {
    clock.after(delay_ms, resolve);
  });
}

export const systemClock = (): Clock => clockOf((run, delay_ms) => setTimeout(run, delay_ms));

/** A clock whose timers keep no process alive. */
export const idleClock = (): Clock => clockOf((run, delay_ms) => setTimeout(run, delay_ms).unref());

function clockOf(timer: (run: () => void, delay_ms: number) => ReturnType<typeof setTimeout>): Clock {
  return {
    now_ms: () => performance.now(),
    after(delay_ms, run) {
      const set = timer(run, delay_ms);
      return () => clearTimeout(set);
    },
  };
}

const steps_ms = [1_000, 100];

/**
 * A clock for repeated work that needs no exact instant. Its timers end at whole tenths of a second of this process,
 * and those of a second or more at whole seconds, so that work that is due at about the same time shares a wake-up: in
 * an idle process a wake-up costs more than most of that work. The timers keep no process alive. A wait ends at most
 * half a step sooner or later; a wait that is shorter than every step is exact.
 */
export function alignedClock(exact: Clock = idleClock()): Clock {
  return {
    now_ms: exact.now_ms,
    after(delay_ms, run) {
      const step_ms = steps_ms.find((one) => one <= delay_ms);
      if (step_ms === undefined) return exact.after(delay_ms, run);
      const now_ms = exact.now_ms();
      const due_ms = Math.round((now_ms + delay_ms) / step_ms) * step_ms;
      // The time is rounded up because timers cut off fractions, and a timer that ended before its step would wait for
      // the same step again.
      return exact.after(Math.ceil(due_ms - now_ms), run);
    },
  };
}

interface Gathered {
  /** Requests a run after this time, unless one is due or running already. */
  ask(wait_ms: number): void;
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
 * Runs work at intervals, never twice at a time. `work` must not reject. Each wait begins when the work ends; the first
 * wait may have another length. If `every` is a function, it is called for each wait. Work that needs its exact instant
 * passes another clock.
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
 * A set whose members come and go often, in place of a Set. When a Set grows, its old table stays behind, with all its
 * members and a pointer to the next table. Once a full garbage collection has found such a table, quick collections
 * keep all tables that follow it. Members that have left are then kept until the next full collection:
 * docs/design/runtime.md, Memory.
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

export interface PresentEntry<Member> {
  readonly member: Member;
  at: number;
}
