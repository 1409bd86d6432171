/**
 * Orders work within the event loop. `turns` collects the work that one poll of the event loop brings, and runs it in
 * portions: portions of urgent work come first, and take turns with portions of the rest. `stepwise` and `inTurns` let
 * other requests run between two steps of work on a large body.
 */
import type { Clock } from "./clock.ts";

export interface Turns {
  /** Runs the work soon. `work` never throws. Work of the same urgency runs in the order in which it came. */
  soon(work: () => void, isUrgent: boolean): void;
}

/** A piece of work takes some 30 µs, so a portion of this size delays urgent work by a millisecond. */
const portion_default = 32;

/** How many requests take a step towards their answer in one turn. A step takes some 100 µs. */
export const starts_portion = 16;

/**
 * While no request waits, a new portion of requests may go on at once when this time has passed since the last portion
 * began.
 */
const starts_ms = 5;

export function turns(portion = portion_default, urgentPortion = starts_portion): Turns {
  const urgent: (() => void)[] = [];
  const flowing: (() => void)[] = [];
  let isDue = false;
  let wasUrgent = false;

  function run(): void {
    // Urgent work has a turn of its own, so that work which it causes runs before the less urgent work. At least every
    // second turn is for the less urgent work.
    wasUrgent = urgent.length > 0 && !(wasUrgent && flowing.length > 0);
    const works = wasUrgent ? urgent.splice(0, urgentPortion) : flowing.splice(0, portion);
    isDue = urgent.length + flowing.length > 0;
    if (isDue) setImmediate(run);
    for (const work of works) work();
  }

  return {
    soon(work, isUrgent) {
      if (isUrgent) urgent.push(work);
      else flowing.push(work);
      if (isDue) return;
      isDue = true;
      setImmediate(run);
    },
  };
}

/**
 * Runs together the work that one poll of the event loop brings, in a turn of its own or in portions. Sockets use it
 * because code that has just run costs less the next time (docs/design/runtime.md, Towards engines). Messages of the
 * database's thread use it, too (stores/postgres/embedded-thread.ts).
 */
export function together(portion = Number.POSITIVE_INFINITY): (work: () => void) => void {
  const { soon } = turns(portion, portion);
  return (work) => soon(work, true);
}

/**
 * Lets a portion of the requests that resume together go on at once, and the others in later turns, so that the tokens
 * of running answers come before new requests. Returns a promise only if the request has to wait.
 */
export function starts(clock: Pick<Clock, "now_ms">): () => Promise<void> | undefined {
  const soon = together(starts_portion);
  let since_ms = Number.NEGATIVE_INFINITY;
  let started = 0;
  let waiting = 0;
  return () => {
    const at_ms = clock.now_ms();
    if (waiting === 0 && at_ms - since_ms >= starts_ms) {
      since_ms = at_ms;
      started = 0;
    }
    if (waiting === 0 && started < starts_portion) {
      started += 1;
      return undefined;
    }
    waiting += 1;
    return new Promise((resolve) =>
      soon(() => {
        waiting -= 1;
        resolve();
      }),
    );
  };
}

/**
 * Bodies up to this size are handled in one go. Nearly all bodies are small, and a pause for each of them would cost
 * more than it helps. The densest body of this size takes about 30 ms.
 */
export const small_bytes = 96 * 1024;

/** A pause between two steps of work on a body of this size. Returns a promise only if it has to wait. */
export type Pause = (bytes: number) => Promise<void> | undefined;

/** Lets the event loop run after work on a large body. Returns a promise only for a large body. */
export function yieldFor(bytes: number): Promise<void> | undefined {
  return bytes > small_bytes ? yieldToEventLoop() : undefined;
}

/** A value; or a promise of it, only if it has to be waited for. */
export type Soon<Value> = Value | Promise<Value>;

/** Does the work when the pause is over. If there is no pause, does it immediately, and without a promise. */
export function after<Result>(pause: Promise<void> | undefined, work: () => Soon<Result>): Soon<Result> {
  return pause ? pause.then(work) : work();
}

/** Resolves after the work of sockets and timers that is already waiting. */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Runs work in steps, with a pause after each. Returns a promise only if there is more than one step. */
export function stepwise<Result>(
  steps: Generator<void, Result, void>,
  bytes: number,
  pause: Pause = yieldFor,
): Soon<Result> {
  const first = steps.next();
  return first.done ? first.value : rest(steps, bytes, pause);
}

async function rest<Result>(steps: Generator<void, Result, void>, bytes: number, pause: Pause): Promise<Result> {
  for (;;) {
    await pause(bytes);
    const step = steps.next();
    if (step.done) return step.value;
  }
}

/** Runs work that is divided into large steps, and pauses after each step. */
export function inTurns<Result>(steps: Generator<void, Result, void>, pause: Pause = yieldFor): Soon<Result> {
  return stepwise(steps, Number.POSITIVE_INFINITY, pause);
}
