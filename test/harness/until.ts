import { busyness } from "./busyness.ts";

/**
 * Waits for a condition, never for a time, and fails loudly when the deadline passes. The deadline is that of a quiet
 * machine; a busy one gets more. `what` names the condition.
 */
export async function until(
  holds: () => boolean | Promise<boolean>,
  deadline_ms = 15_000,
  what = String(holds),
): Promise<void> {
  const began = performance.now();
  while (!(await holds())) {
    const waited_ms = performance.now() - began;
    if (waited_ms > deadline_ms && waited_ms > deadline_ms * busyness())
      throw new Error(`waited ${Math.round(waited_ms)} ms for ${what}`);
    await Bun.sleep(10);
  }
}
