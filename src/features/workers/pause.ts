/** How long the supervisor waits before it starts a worker again. Pure. */

const first_ms = 100;
const longest_ms = 30_000;
/** A worker that has served for this long did not end because of its start. */
const sound_ms = 10_000;

/** The wait in milliseconds. `quick`: how many of the worker's predecessors in a row ended soon after their start. */
export function pauseAfter(quick: number): number {
  return quick === 0 ? 0 : Math.min(longest_ms, first_ms * 2 ** (quick - 1));
}

/** Whether a worker ended soon after its start. `served_ms`: null if it never served. */
export function isQuick(served_ms: number | null): boolean {
  return served_ms === null || served_ms < sound_ms;
}
