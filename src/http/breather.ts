/** Between two stretches of work on a large body others get their turn: one request must not hold up the rest. */

/** Below this a body is worked through in one go. A pause costs little, but small bodies are nearly all there are. */
const small_bytes = 256 * 1024;

export async function breather(bytes: number): Promise<void> {
  if (bytes > small_bytes) await new Promise<void>((resolve) => setImmediate(resolve));
}

/** Work that comes in steps, with a pause after each. */
export async function breathing<Result>(steps: Generator<void, Result, void>, bytes: number): Promise<Result> {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
    await breather(bytes);
  }
}
