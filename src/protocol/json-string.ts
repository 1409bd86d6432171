/** A long string of JSON → its value, in steps and without a copy in between: its text would cost twice as much again. Pure. */
import { backslash } from "./json-bytes.ts";

/** What is looked at before others get their turn. */
const slice_bytes = 2 * 1024 * 1024;

/**
 * The string whose content stands between `from` and `to`; what it escapes is written over it, for it is never longer
 * than its escape. Throws SyntaxError, or what the decoder throws.
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
      const character = escaped(bytes, at, to);
      // Half of a pair: UTF-8 has no bytes for it.
      if (character.code >= 0xd800 && character.code <= 0xdfff) {
        const rest = JSON.parse(`"${decoder.decode(bytes.subarray(at, to))}"`) as string;
        return decoder.decode(bytes.subarray(from, written)) + rest;
      }
      written = put(bytes, written, character.code);
      at = character.after;
    }
    yield;
  }
  return decoder.decode(bytes.subarray(from, written));
}

interface Escaped {
  /** A code point. */
  code: number;
  after: number;
}

const letter_u = 0x75;
/** `"` `\` `/` and b, f, n, r, t, with what they stand for. */
const short = new Map([0x22, 0x5c, 0x2f].map((code) => [code, code]));
for (const [at, letter] of [..."bfnrt"].entries()) short.set(letter.charCodeAt(0), [8, 12, 10, 13, 9][at]!);

function escaped(bytes: Uint8Array, at: number, to: number): Escaped {
  const mark = bytes[at + 1]!;
  if (mark !== letter_u) {
    const code = short.get(mark);
    if (code === undefined) throw new SyntaxError("an escape is unknown");
    return { code, after: at + 2 };
  }
  const unit = unitAt(bytes, at, to);
  const isHigh = unit >= 0xd800 && unit <= 0xdbff;
  if (isHigh && at + 12 <= to && bytes[at + 6] === backslash && bytes[at + 7] === letter_u) {
    const low = unitAt(bytes, at + 6, to);
    if (low >= 0xdc00 && low <= 0xdfff)
      return { code: 0x10000 + (unit - 0xd800) * 0x400 + (low - 0xdc00), after: at + 12 };
  }
  return { code: unit, after: at + 6 };
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

/** As UTF-8; answers where the next goes. */
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
