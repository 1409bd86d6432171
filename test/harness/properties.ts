// How a property is tried where each case takes a while.

/** A broken law is looked for in ever smaller cases; after this time it is told with its seed, before the test's own ends. */
const looking_ms = 50_000;

export function cases(numRuns: number) {
  return { numRuns, interruptAfterTimeLimit: looking_ms, markInterruptAsFailure: true };
}
