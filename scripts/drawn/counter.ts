// The part of an instrumented tree that notes which parts of its files run (parts.ts): each file there imports this one.

import { openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { ran } from "./ran.ts";

const note = noteIn(join(import.meta.dir, "../..", ran));

/** Writes down a part when it first runs in this process: at once, because processes are killed. */
export function counter(path: string, parts: number): (part: number) => void {
  const isNoted = new Uint8Array(parts);
  return (part) => {
    if (isNoted[part] === 1) return;
    isNoted[part] = 1;
    note(`${path} ${part}\n`);
  };
}

/**
 * Appends lines to the file. In an executable that a test makes of the tree, there is no such file beside the source,
 * and nothing is noted.
 */
function noteIn(file: string): (line: string) => void {
  try {
    const channel = openSync(file, "a");
    return (line) => void writeSync(channel, line);
  } catch {
    return () => {};
  }
}
