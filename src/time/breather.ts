/** Between two stretches of work on a large body others get their turn: one request must not hold up the rest. */

/**
 * Up to this a body is worked through in one go: a pause costs little, but small bodies are nearly all there are. The
 * densest of this size takes some 30 ms.
 */
export const small_bytes = 96 * 1024;

/** Between two steps of work on a body of this size; a promise only where it has to wait. */
export type Pause = (bytes: number) => Promise<void> | undefined;

/** A promise only for a large one. */
export function breather(bytes: number): Promise<void> | undefined {
  return bytes > small_bytes ? othersTurn() : undefined;
}

/** Resolves after work that waits for sockets or timers. */
export function othersTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Work that comes in steps, with a pause after each. A promise only where there is more than one. */
export function breathing<Result>(
  steps: Generator<void, Result, void>,
  bytes: number,
  pause: Pause = breather,
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

/** Work whose steps are each worth a pause. */
export function inTurns<Result>(
  steps: Generator<void, Result, void>,
  pause: Pause = breather,
): Result | Promise<Result> {
  return breathing(steps, Number.POSITIVE_INFINITY, pause);
}
