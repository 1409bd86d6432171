/** How much one answer of an engine may consist of: docs/design/errors-and-streams.md, Answers that are bounded. Pure. */

/** An answer that is not read, or not further: it is none in the engine's protocol, or beyond what is read of one. */
export class UnreadableAnswer extends Error {
  override readonly name = "UnreadableAnswer";
}

/** Parts, calls among them, and whatever else an engine numbers: models make a few dozen. */
export const parts_max = 1024;

/** Throws UnreadableAnswer where there are too many of them. */
export function assertFewParts(count: number): void {
  if (count > parts_max) throw new UnreadableAnswer(`the answer has more than ${parts_max} parts`);
}
