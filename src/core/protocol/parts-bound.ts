/** Limits the number of parts in one answer: docs/design/errors-and-streams.md, Answers that are bounded. Pure. */

/** Thrown where an answer cannot be read further: it breaks the engine's protocol, or exceeds a limit. */
export class UnreadableAnswer extends Error {
  override readonly name = "UnreadableAnswer";
}

/** Parts, calls and whatever else an engine numbers. Models make a few dozen. */
export const parts_max = 1024;

/** Throws UnreadableAnswer if there are too many. */
export function assertFewParts(count: number): void {
  if (count > parts_max) throw new UnreadableAnswer(`the answer has more than ${parts_max} parts`);
}
