/** The grammar of JSON in bytes: the states of a reader, the punctuation bytes, and numbers. Pure. */
import { UnreadableAnswer } from "../../core/protocol/codec.ts";

export enum At {
  Value,
  FirstValue,
  FirstKey,
  Key,
  Colon,
  After,
  Text,
  Escape,
  Hex,
  Literal,
  Minus,
  Zero,
  Whole,
  Point,
  Fraction,
  Exponent,
  Sign,
  Power,
  End,
}

export const [quote, backslash, comma, colon] = [0x22, 0x5c, 0x2c, 0x3a];
export const [brace, braceEnd, bracket, bracketEnd] = [0x7b, 0x7d, 0x5b, 0x5d];
export const [minus, plus, point, zero, nine] = [0x2d, 0x2b, 0x2e, 0x30, 0x39];
export const space = 0x20;

export const literals = new Map(
  ["true", "false", "null"].map((word) => [word.charCodeAt(0), new TextEncoder().encode(word)]),
);
export const escapes = new Set([...'"\\/bfnrt'].map((letter) => letter.charCodeAt(0)));

export const isDigit = (byte: number) => byte >= zero && byte <= nine;

/** The index after the digits that begin at this index. */
function digitsEnd(bytes: Uint8Array, begin: number): number {
  let place = begin;
  while (isDigit(bytes[place]!)) place++;
  return place;
}

/** The index after the number that begins at this index; -1 if none begins, or if it may continue after these bytes. */
export function numberEnd(bytes: Uint8Array, begin: number): number {
  const whole = bytes[begin] === minus ? begin + 1 : begin;
  let place = digitsEnd(bytes, whole);
  if (place === whole || (bytes[whole] === zero && place > whole + 1)) return -1;
  if (bytes[place] === point) {
    const fraction = place + 1;
    place = digitsEnd(bytes, fraction);
    if (place === fraction) return -1;
  }
  if ((bytes[place]! | 0x20) === 0x65) {
    const exponent = place + (bytes[place + 1] === minus || bytes[place + 1] === plus ? 2 : 1);
    place = digitsEnd(bytes, exponent);
    if (place === exponent) return -1;
  }
  return place < bytes.length ? place : -1;
}

/** The state after this byte inside a number. `After`: the number ended before the byte. */
export function afterInNumber(at: At, byte: number): At {
  if (isDigit(byte)) {
    if (at === At.Whole || at === At.Fraction || at === At.Power) return at;
    if (at === At.Minus) return byte === zero ? At.Zero : At.Whole;
    if (at === At.Point) return At.Fraction;
    if (at === At.Exponent || at === At.Sign) return At.Power;
    throw malformed();
  }
  const isWhole = at === At.Zero || at === At.Whole;
  if (byte === point && isWhole) return At.Point;
  if ((byte | 0x20) === 0x65 && (isWhole || at === At.Fraction)) return At.Exponent;
  if ((byte === plus || byte === minus) && at === At.Exponent) return At.Sign;
  if (isWhole || at === At.Fraction || at === At.Power) return At.After;
  throw malformed();
}

export function isHex(byte: number): boolean {
  const letter = byte | 0x20;
  return isDigit(byte) || (letter >= 0x61 && letter <= 0x66);
}

export function malformed(): UnreadableAnswer {
  return new UnreadableAnswer("the answer is no JSON");
}
