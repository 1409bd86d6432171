/** JSON as bytes: what stands outside strings, and where a string ends. Pure. */

export const quote = 0x22;
export const comma = 0x2c;
export const colon = 0x3a;
export const backslash = 0x5c;
export const closingBrace = 0x7d;

/** `[` or `{`: they differ in one bit. */
export function opens(byte: number): boolean {
  return (byte & 0xdf) === 0x5b;
}

/** `]` or `}`. */
export function closes(byte: number): boolean {
  return (byte & 0xdf) === 0x5d;
}

/** Names and short words are walked through; looking for the end natively pays off beyond. */
const walked_bytes = 16;

/**
 * From inside a string to behind its closing quote. 0: the bytes end before the string does; one more than there are
 * bytes: they do so on a backslash, which escapes the next.
 */
export function stringEnd(bytes: Uint8Array, from: number): number {
  const end = bytes.length;
  let at = from;
  for (;;) {
    const walkedTo = Math.min(end, at + walked_bytes);
    while (at < walkedTo) {
      const byte = bytes[at++]!;
      if (byte === quote) return at;
      if (byte === backslash) at++;
    }
    if (at >= end) return at > end ? end + 1 : 0;
    const found = bytes.indexOf(quote, at);
    const isEscaped = oddBackslashes(bytes, at, found === -1 ? end : found);
    if (found === -1) return isEscaped ? end + 1 : 0;
    at = found + 1;
    if (!isEscaped) return at;
  }
}

/** Whether the run of backslashes that ends before `to` escapes what stands there. */
function oddBackslashes(bytes: Uint8Array, from: number, to: number): boolean {
  let at = to;
  while (at > from && bytes[at - 1] === backslash) at--;
  return (to - at) % 2 === 1;
}
