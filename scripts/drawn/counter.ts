// Code that an instrumented copy of the product imports in each file, in order to record which parts of the file run
// (parts.ts).

import { openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { ran } from "./ran.ts";

const note = noteIn(join(import.meta.dir, "../..", ran));

/**
 * Returns a function that records a part when it first runs in this process. It writes immediately, because tests kill
 * processes.
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
 * Returns a function that appends lines to the file. In an executable that a test compiles from the instrumented copy,
 * the file's folder does not exist, and the function does nothing.
 */
function noteIn(file: string): (line: string) => void {
  try {
    const channel = openSync(file, "a");
    return (line) => void writeSync(channel, line);
  } catch {
    return () => {};
  }
}
