// Generates JSON texts independently of the product's code, with blanks anywhere and repeated member names; valid ones,
// or with a few errors.

import fc from "fast-check";

/** A value to be written: its members keep their order, and names may repeat. */
export type Written = null | boolean | number | string | Written[] | { members: [name: string, value: Written][] };

const word = fc.oneof(
  fc.constantFrom(
    "",
    "__proto__",
    "constructor",
    "1",
    "02",
    'x"y\\',
    "\\",
    "é😀",
    "\u0000",
    "a".repeat(40),
    "\\".repeat(30),
  ),
  fc.string({ unit: "grapheme", maxLength: 60 }),
);

export const written: fc.Arbitrary<Written> = fc.letrec<{ value: Written }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.constantFrom(null, true, 0, -2.5, 1e300),
    word,
    fc.array(tie("value"), { maxLength: 6 }),
    fc.array(fc.tuple(word, tie("value")), { maxLength: 6 }).map((members) => ({ members })),
  ),
})).value;

const blanks = fc.constantFrom("", " ", "\n", "\t \r\n");

/** The value as JSON text, with these blanks between its tokens. */
export function textOf(value: Written, blank: string): string {
  if (Array.isArray(value)) return `[${blank}${value.map((item) => textOf(item, blank)).join(`${blank},`)}]${blank}`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = value.members.map(([name, item]) => `${JSON.stringify(name)}${blank}:${textOf(item, blank)}`);
  return `{${members.join(`,${blank}`)}${blank}}`;
}

export const soundText: fc.Arbitrary<string> = fc.tuple(written, blanks).map(([value, blank]) => textOf(value, blank));

const signs = ["", ",", "[", "]", "{", "}", ":", '"', "\\", " ", "1", "null", ",,", "\ufeff", "é", "\u0001"];
const escapes = "\\n \\u00e9 \\u20aC \\ud83d\\ude00 \\ud83d \\ude00 \\ud83d\\n \\u12 \\x \\/".split(" ");
const marks = [...signs, ...escapes];

/** A valid text of which up to three positions are overwritten. */
export const brokenText: fc.Arbitrary<string> = fc
  .tuple(soundText, fc.array(fc.tuple(fc.nat(), fc.nat(2), fc.constantFrom(...marks)), { minLength: 1, maxLength: 3 }))
  .map(([text, edits]) =>
    edits.reduce((before, [place, gone, mark]) => {
      const at = place % (before.length + 1);
      return before.slice(0, at) + mark + before.slice(at + gone);
    }, text),
  );
