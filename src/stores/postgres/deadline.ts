/**
 * A deadline that ends this process: if PGlite cannot start, it may loop for ever, and a thread cannot be interrupted.
 */
import { writeSync } from "node:fs";

/** Writes `message` to stderr and exits with code 1 after this time. Returns a function that cancels this. */
export function exitAfter(wait_ms: number, message: string): () => void {
  const timer = setTimeout(() => {
    writeSync(2, `${message}\n`);
    process.exit(1);
  }, wait_ms);
  return () => clearTimeout(timer);
}
