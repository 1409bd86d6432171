// The part of an instrumented tree that notes which parts of its files run (parts.ts): each file of the tree imports this
// one.

import { openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { ran } from "./ran.ts";

const note = noteIn(join(import.meta.dir, "../..", ran));

/**
 * Returns a function that writes down a part when it first runs in this process: at once, because processes are killed.
 */
export function counter(path: string, parts: number): (part: number) => void {
  const isNoted = new Uint8Array(parts);
  return (part) => {
    if (isNoted[part] === 1) return;
    isNoted[part] = 1;
    note(`${path} ${part}\n`);
  };
}

/**
 * Returns a function that appends lines to the file. In an executable that a test makes of the tree, there is no such
 * file beside the source, and the function does nothing.
 */
function noteIn(file: string): (line: string) => void {
  try {
    const channel = openSync(file, "a");
    return (line) => void writeSync(channel, line);
  } catch {
    return () => {};
  }
}
