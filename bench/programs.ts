import { join } from "node:path";

const root = join(import.meta.dir, "..");

/** The commands that start this service and, with TEST_SLUICE_BEFORE, an older binary. */
export function programs(): { now: string[]; before: string[] | null } {
  const { TEST_SLUICE: now, TEST_SLUICE_BEFORE: before } = process.env;
  return { now: now ? [now] : [process.execPath, join(root, "src/main.ts")], before: before ? [before] : null };
}
