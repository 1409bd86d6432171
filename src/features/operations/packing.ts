/** Writes a vector in base64, as `encoding_format: "base64"` has it: 32-bit floats, little-endian. Pure. */
import { UnreadableAnswer } from "../../core/protocol/codec.ts";

export function packed(numbers: readonly number[]): string {
  const bytes = Buffer.alloc(numbers.length * Float32Array.BYTES_PER_ELEMENT);
  let at = 0;
  for (const number of numbers) {
    if (!Number.isFinite(Math.fround(number)))
      throw new UnreadableAnswer("a number of a vector is larger than a 32-bit float");
    at = bytes.writeFloatLE(number, at);
  }
  return bytes.toString("base64");
}
