/** Lets other requests run between two stretches of work on a large body: one request must not hold up the rest. */

/**
 * A body up to this size is handled in one go: a pause costs little, but nearly all bodies are small. The densest body
 * of this size takes about 30 ms.
 */
export const small_bytes = 96 * 1024;

/** A pause between two steps of work on a body of this size. Returns a promise only if it has to wait. */
export type Pause = (bytes: number) => Promise<void> | undefined;

/** Returns a promise only for a large body. */
export function yieldFor(bytes: number): Promise<void> | undefined {
  return bytes > small_bytes ? yieldToEventLoop() : undefined;
}

/** Resolves after the work that waits for sockets or timers. */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Runs work in steps, with a pause after each. Returns a promise only if there is more than one step. */
export function stepwise<Result>(
  steps: Generator<void, Result, void>,
  bytes: number,
  pause: Pause = yieldFor,
): Result | Promise<Result> {
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

/** Runs work whose steps are each large enough for a pause. */
export function inTurns<Result>(
  steps: Generator<void, Result, void>,
  pause: Pause = yieldFor,
): Result | Promise<Result> {
  return stepwise(steps, Number.POSITIVE_INFINITY, pause);
}
