/** Waits for a condition, never for a time: fails loudly when the deadline passes. */
export async function until(holds: () => boolean | Promise<boolean>, deadline_ms: number, what: string): Promise<void> {
  const end = performance.now() + deadline_ms;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`waited ${deadline_ms} ms for ${what}`);
    await Bun.sleep(10);
  }
}
