/** Recognizes the bytes of JSON outside of strings, and finds where a string ends. Pure. */

export const quote = 0x22;
export const comma = 0x2c;
export const colon = 0x3a;
export const backslash = 0x5c;
export const closingBrace = 0x7d;
export const openingBrace = 0x7b;
export const openingBracket = 0x5b;
export const closingBracket = 0x5d;
export const digitZero = 0x30;

/** Whether the byte is a blank between the tokens of JSON. */
export function isBlank(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** Whether the byte is `[` or `{`, which differ in one bit. */
export function opens(byte: number): boolean {
  return (byte & 0xdf) === 0x5b;
}

/** Whether the byte is `]` or `}`. */
export function closes(byte: number): boolean {
  return (byte & 0xdf) === 0x5d;
}

/** Names and short words are walked byte by byte; a native search for the end pays off for longer ones. */
const walked_bytes = 16;

/**
 * The index after the closing quote of a string whose content begins at `from`. 0 if the bytes end before the string
 * does; `bytes.length + 1` if they end on a backslash, which escapes the next byte.
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

/** Reports whether the run of backslashes that ends before `to` escapes the byte there. */
function oddBackslashes(bytes: Uint8Array, from: number, to: number): boolean {
  let at = to;
  while (at > from && bytes[at - 1] === backslash) at--;
  return (to - at) % 2 === 1;
}
