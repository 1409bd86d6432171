import { availableParallelism, loadavg } from "node:os";

/**
 * By how many processes each core is shared, 1 at least. A test whose guarantee is a time multiplies it by this: on a quiet
 * machine it is held to the time itself, and on a busy one to its share of the machine.
 */
export function busyness(): number {
  return Math.max(1, loadavg()[0]! / availableParallelism());
}
