// A file of JSON values, one a line. Runs append to it, and may be killed at any time.

import { appendFileSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { dirname } from "node:path";

/** The values of a file; none if it isn't there. */
export function linesIn<T>(path: string): T[] {
  const lines = existsSync(path) ? readFileSync(path, "utf8").split("\n") : [];
  return lines.flatMap((line) => {
    try {
      return [JSON.parse(line) as T];
    } catch {
      // The line is empty, or half a value of a run that was killed.
      return [];
    }
  });
}

export function addLine(path: string, value: unknown): void {
  mkdirSync(dirname(path), { recursive: true });
  appendFileSync(path, `\n${JSON.stringify(value)}`);
}
