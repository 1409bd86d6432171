// Reads and writes a file of JSON values, one per line. Processes append to it, and may be killed at any time.

import { appendFileSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { dirname } from "node:path";

/** The values in a file; none if the file does not exist. */
export function linesIn<T>(path: string): T[] {
  const lines = existsSync(path) ? readFileSync(path, "utf8").split("\n") : [];
  return lines.flatMap((line) => {
    try {
      return [JSON.parse(line) as T];
    } catch {
      // The line is empty, or incomplete because its process was killed.
      return [];
    }
  });
}

export function addLine(path: string, value: unknown): void {
  mkdirSync(dirname(path), { recursive: true });
  appendFileSync(path, `\n${JSON.stringify(value)}`);
}
