/** Limits the number of parts in one answer: docs/design/errors-and-streams.md, Answers that are bounded. Pure. */

/** Thrown if an answer cannot be read further, because it breaks the engine's protocol or exceeds a limit. */
export class UnreadableAnswer extends Error {
  override readonly name = "UnreadableAnswer";
}

/** The most parts or calls of an answer. Models make a few dozen. */
export const parts_max = 1024;

/** Throws UnreadableAnswer if there are too many. */
export function assertFewParts(count: number): void {
  if (count > parts_max) throw new UnreadableAnswer(`the answer has more than ${parts_max} parts`);
}
