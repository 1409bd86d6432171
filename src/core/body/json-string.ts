/**
 * Decodes a long JSON string in steps and without an intermediate copy, which would take twice its size again. Pure.
 */
import { backslash } from "./json-bytes.ts";

/** The number of bytes that are read before other requests get their turn. */
const slice_bytes = 2 * 1024 * 1024;

/**
 * Decodes the string whose content is between `from` and `to`. Escaped characters are written over their escapes, which
 * are never shorter. Throws SyntaxError, or the decoder's error.
 */
export function* longString(
  bytes: Uint8Array,
  from: number,
  to: number,
  decoder: TextDecoder,
): Generator<void, string, void> {
  let written = from;
  for (let at = from; at < to; ) {
    const end = Math.min(to, at + slice_bytes);
    while (at < end) {
      const byte = bytes[at]!;
      if (byte < 0x20) throw new SyntaxError("a string holds a control character");
      if (byte !== backslash) {
        bytes[written++] = byte;
        at++;
        continue;
      }
      // Only numbers are kept: an object for each escape would cost many times the string.
      let code = unescaped(bytes, at, to);
      at += bytes[at + 1] === letter_u ? 6 : 2;
      if (isSurrogate(code)) {
        const low = lowHalf(bytes, code, at, to);
        // A lone surrogate has no bytes in UTF-8, so the rest of the string is parsed as JSON text.
        if (low < 0) {
          const rest = JSON.parse(`"${decoder.decode(bytes.subarray(at - 6, to))}"`) as string;
          return decoder.decode(bytes.subarray(from, written)) + rest;
        }
        code = 0x10000 + (code - 0xd800) * 0x400 + (low - 0xdc00);
        at += 6;
      }
      written = put(bytes, written, code);
    }
    yield;
  }
  return decoder.decode(bytes.subarray(from, written));
}

const letter_u = 0x75;
/** The one-character escapes (`"` `\` `/` b f n r t) and the characters that they stand for. */
const short = new Map([0x22, 0x5c, 0x2f].map((code) => [code, code]));
for (const [at, letter] of [..."bfnrt"].entries()) short.set(letter.charCodeAt(0), [8, 12, 10, 13, 9][at]!);

/** The code point of the escape, or half of a surrogate pair. */
function unescaped(bytes: Uint8Array, at: number, to: number): number {
  const mark = bytes[at + 1]!;
  if (mark === letter_u) return unitAt(bytes, at, to);
  const code = short.get(mark);
  if (code === undefined) throw new SyntaxError("an escape is unknown");
  return code;
}

function isSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdfff;
}

/** The second half of a surrogate pair, if its escape is at `at`; else -1. */
function lowHalf(bytes: Uint8Array, high: number, at: number, to: number): number {
  if (high > 0xdbff || at + 6 > to || bytes[at] !== backslash || bytes[at + 1] !== letter_u) return -1;
  const low = unitAt(bytes, at, to);
  return low >= 0xdc00 && low <= 0xdfff ? low : -1;
}

/** The four digits of `\u1234`. */
function unitAt(bytes: Uint8Array, at: number, to: number): number {
  if (at + 6 > to) throw new SyntaxError("an escape is cut");
  let unit = 0;
  for (let digit = at + 2; digit < at + 6; digit++) unit = unit * 16 + digitOf(bytes[digit]!);
  return unit;
}

function digitOf(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const letter = byte | 0x20;
  if (letter >= 0x61 && letter <= 0x66) return letter - 0x57;
  throw new SyntaxError("an escape has a digit that is none");
}

/** Writes a code point as UTF-8, and returns the index of the byte after it. */
function put(bytes: Uint8Array, at: number, code: number): number {
  if (code < 0x80) {
    bytes[at] = code;
    return at + 1;
  }
  if (code < 0x800) {
    bytes[at] = 0xc0 | (code >> 6);
    bytes[at + 1] = 0x80 | (code & 0x3f);
    return at + 2;
  }
  if (code < 0x10000) {
    bytes[at] = 0xe0 | (code >> 12);
    bytes[at + 1] = 0x80 | ((code >> 6) & 0x3f);
    bytes[at + 2] = 0x80 | (code & 0x3f);
    return at + 3;
  }
  bytes[at] = 0xf0 | (code >> 18);
  bytes[at + 1] = 0x80 | ((code >> 12) & 0x3f);
  bytes[at + 2] = 0x80 | ((code >> 6) & 0x3f);
  bytes[at + 3] = 0x80 | (code & 0x3f);
  return at + 4;
}
