import { slowness } from "./slowness.ts";

/**
 * Waits for a condition, never for a time, and fails loudly when the deadline passes, which is that of a quiet machine.
 * `what` names the condition.
 */
export async function until(
  holds: () => boolean | Promise<boolean>,
  deadline_ms = 10_000,
  what = String(holds),
): Promise<void> {
  const patience_ms = deadline_ms * slowness();
  const end = performance.now() + patience_ms;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`waited ${Math.round(patience_ms)} ms for ${what}`);
    await Bun.sleep(10);
  }
}
