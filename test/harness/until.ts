import { busyness } from "./busyness.ts";

const dear_ms = 500;

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
  for (;;) {
    const asked = performance.now();
    if (await holds()) return;
    const now = performance.now();
    const waited_ms = now - began;
    if (waited_ms > deadline_ms && waited_ms > deadline_ms * busyness())
      throw new Error(`waited ${Math.round(waited_ms)} ms for ${what}`);
    // A condition that is expensive, such as one that runs a command, takes at most half of the time.
    await Bun.sleep(Math.max(10, Math.min(now - asked, dear_ms)));
  }
}
