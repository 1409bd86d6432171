// The order in which test files start: the longest first, so that no worker is still busy with a long file when the
// others have finished. The duration of each file is stored in .cache; in a new clone, it is only known which files are
// long.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { longFiles } from "./test-files.ts";

const remembered = ".cache/test-timings.json";

/**
 * The options of `bun test` that start the longest files first. Bun starts a file without a known duration before all
 * others, so each file gets an estimated one.
 */
export function longestFirst(): string[] {
  mkdirSync(".cache", { recursive: true });
  const known = existsSync(remembered) ? timesIn(readFileSync(remembered, "utf8")) : {};
  const long = longFiles();
  const files: Record<string, number> = {};
  for (const file of new Bun.Glob("test/**/*.test.ts").scanSync())
    files[file] = known[file] ?? (long.has(file) ? 60_000 : 1_000);
  writeFileSync(remembered, JSON.stringify({ version: 1, files }));
  // The durations in a deep run are not typical, so such a run does not update the stored ones.
  return [`--timings=${remembered}`, ...(process.env.TEST_DEEP === "1" ? [] : ["--update-timings"])];
}

/** The durations in the text; none if the text is incomplete, because a killed run may have written half a file. */
function timesIn(text: string): Record<string, number> {
  try {
    return (JSON.parse(text) as { files: Record<string, number> }).files;
  } catch {
    return {};
  }
}
