import { busyness } from "./busyness.ts";

const dear_ms = 500;

/**
 * Waits until a condition holds, and throws when the deadline passes. The deadline is meant for a quiet machine, and is
 * extended on a busy one. `what` names the condition in the error.
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
    // The wait is as long as the last check took, so that an expensive check, such as a command, takes at most half of
    // the time.
    await Bun.sleep(Math.max(10, Math.min(now - asked, dear_ms)));
  }
}
