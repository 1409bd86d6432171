// In which order test files start: the longest first, so that no worker has a long one left when the others are done. How
// long each took is remembered in .cache; a clone that has not run them yet knows only which are long.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { longFiles } from "./test-files.ts";

const remembered = ".cache/test-timings.json";

/**
 * The options of `bun test` that start the longest files first. Bun starts a file without a known time before all
 * others, so each file gets a time.
 */
export function longestFirst(): string[] {
  mkdirSync(".cache", { recursive: true });
  const known = existsSync(remembered) ? timesIn(readFileSync(remembered, "utf8")) : {};
  const long = longFiles();
  const files: Record<string, number> = {};
  for (const file of new Bun.Glob("test/**/*.test.ts").scanSync())
    files[file] = known[file] ?? (long.has(file) ? 60_000 : 1_000);
  writeFileSync(remembered, JSON.stringify({ version: 1, files }));
  // The times of a deep run are not typical, so such a run does not update them.
  return [`--timings=${remembered}`, ...(process.env.TEST_DEEP === "1" ? [] : ["--update-timings"])];
}

/** The times in the text; none if the text is broken, since a run that was killed may have left half a file. */
function timesIn(text: string): Record<string, number> {
  try {
    return (JSON.parse(text) as { files: Record<string, number> }).files;
  } catch {
    return {};
  }
}
