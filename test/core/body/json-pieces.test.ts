/**
 * A value that is sent to an engine in pieces is, byte for byte, the output of JSON.stringify, after unpaired
 * surrogates in its texts were replaced.
 */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { jsonPieces } from "../../../src/core/body/json-pieces.ts";
import { forAll } from "../protocol/for-all.ts";

const joined = (value: unknown, piece?: number) => Buffer.concat([...jsonPieces(value, piece)]).toString();
const text = fc.oneof(
  fc.string({ unit: "binary", maxLength: 40 }),
  fc.constantFrom("😀".repeat(9), "\ud83d", "\ude00\ud83d", '"\\\n', "é€"),
);
const value = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: "medium" },
    text,
    fc.constantFrom(null, true, 0, -2.5e-7),
    fc.array(tie("value"), { maxLength: 8 }),
    fc.dictionary(fc.oneof(text, fc.constantFrom("__proto__", "1")), fc.oneof(tie("value"), fc.constant(undefined)), {
      maxKeys: 8,
    }),
  ),
})).value;

/** The value without unpaired surrogates. */
function wellFormed(one: unknown): unknown {
  if (typeof one === "string") return one.toWellFormed();
  if (Array.isArray(one)) return one.map(wellFormed);
  if (typeof one !== "object" || one === null) return one;
  const fields = Object.entries(one).map(([name, inner]) => [name.toWellFormed(), wellFormed(inner)] as const);
  fc.pre(new Set(fields.map(([name]) => name)).size === fields.length);
  return Object.fromEntries(fields);
}

test("any value, in pieces of any size", () => {
  forAll([value, fc.integer({ min: 1, max: 300 })], 2_000, (one, piece) => {
    expect(joined(one, piece)).toBe(JSON.stringify(wellFormed(one)));
  });
});

test("a field that is absent leaves no comma, and one absent from a list is null", () => {
  const one = { a: undefined, b: [undefined, "x".repeat(50)], c: undefined, d: {}, e: [], f: undefined };
  for (const piece of [1, 20, 60]) expect(joined(one, piece)).toBe(JSON.stringify(one));
});

test("no piece is much larger than it is to be, whatever is large: texts, names, lists, numbers or nothing", () => {
  const piece = 1000;
  const names = Array.from({ length: 2_000 }, (_, at) => `a name of some length, number ${at}`);
  const numbers = Array.from({ length: 5_000 }, (_, at) => at);
  const fieldsOf = (all: readonly (string | number)[], value: unknown) =>
    Object.fromEntries(all.map((name) => [name, value]));
  for (const large of [
    { text: "é".repeat(50_000), ["n".repeat(20_000)]: numbers.map((at) => [at, "s"]) },
    fieldsOf(names, ""),
    fieldsOf(numbers, null),
    fieldsOf(numbers, ""),
    { numbers },
  ]) {
    for (const value of [large, { large, and: [large] }]) {
      const pieces = [...jsonPieces(value, piece)];
      expect(Buffer.concat(pieces).toString()).toBe(JSON.stringify(value));
      for (const { byteLength } of pieces) expect(byteLength).toBeLessThan(8 * piece);
    }
  }
});
