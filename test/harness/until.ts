/** Waits for a condition, never for a time: fails loudly when the deadline passes. `what` is what is waited for. */
export async function until(
  holds: () => boolean | Promise<boolean>,
  deadline_ms = 15_000,
  what = String(holds),
): Promise<void> {
  const end = performance.now() + deadline_ms;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`waited ${deadline_ms} ms for ${what}`);
    await Bun.sleep(10);
  }
}
