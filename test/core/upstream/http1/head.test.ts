/** Header fields that are read in place: the result is the same as from a parsed head. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { fieldsOf, headOf } from "../../../../src/core/upstream/http1/head.ts";

const names = ["content-length", "content-type", "connection", "x", "x-a", "x-ab"];
const name = fc.constantFrom(...names, "Content-Length", "X-A", "CONNECTION", "y");
const blank = fc.constantFrom("", " ", "\t", "  \t");
const value = fc.constantFrom("", "5", "a b", "a\t b", "x-a: 5", "\xa0é\xa0", "close, keep-alive", ":");
const field = fc.tuple(name, blank, value, blank);

function takenApart(fields: readonly [string, string, string, string][]): Map<string, string> {
  const found = new Map<string, string>();
  for (const [named, , said] of fields) {
    const key = named.toLowerCase();
    found.set(key, found.has(key) ? `${found.get(key)}, ${said}` : said);
  }
  return found;
}

test("a field is found by its whole name, whatever its case, without the blanks around it, and with all that it was given", () => {
  fc.assert(
    fc.property(fc.array(field, { maxLength: 6 }), (fields) => {
      const text = `${fields.map(([named, before, said, after]) => `${named}:${before}${said}${after}\r\n`).join("")}\r\n`;
      const [read, expected] = [fieldsOf(text), takenApart(fields)];
      for (const each of names) expect(read.get(each)).toBe(expected.get(each));
    }),
    { numRuns: 3_000, seed: 20_261_123 },
  );
});

test("a head is read as its own lines say, however many others came before it, and a malformed one is refused each time", () => {
  const lines = (length: number) => `HTTP/1.1 200 OK\r\ncontent-length: ${length}\r\nx-a: ${length}\r\n\r\n`;
  const heads = new Set<unknown>();
  for (let round = 0; round < 3; round++) {
    for (let length = 0; length < 200; length++) {
      const head = headOf(lines(length));
      expect([head.framing, head.headers.get("x-a")]).toEqual([{ by: "length", bytes: length }, `${length}`]);
      heads.add(head);
      expect(headOf(lines(length))).toBe(head);
      expect(() => headOf(lines(length).replace("x-a:", "x-a :"))).toThrow("malformed");
    }
  }
  expect(heads.size).toBe(600);
  const long = lines(1).replace("x-a: 1", `x-a: ${"a".repeat(1024)}`);
  expect(headOf(long)).not.toBe(headOf(long));
});
