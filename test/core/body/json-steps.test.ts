/**
 * A body that is parsed in steps is refused if and only if JSON.parse refuses it, also at the boundary between two
 * steps. Further cases: test/fuzz/body-scan.ts.
 */
import { describe, expect, test } from "bun:test";
import { parseInSteps } from "../../../src/core/body/json-steps.ts";

function parsed(text: string, step_ns: number, long_bytes?: number) {
  const bytes = new TextEncoder().encode(text);
  const walk = parseInSteps(bytes, { step: step_ns, long: long_bytes });
  for (let steps = 0; ; steps++) {
    const step = walk.next();
    if (step.done) return { ...step.value, steps, text: new TextDecoder().decode(bytes) };
  }
}

describe("in steps", () => {
  test.each([
    "[[1,2] 3]",
    '{"a":[1,2] "b":1}',
    "[[1,2],]",
    "[,[1,2]]",
    "[[1,2}]",
    '{"a" [1,2]}',
    "{1:[1,2]}",
    '{"a":[1,2],}',
    '["a":[1,2]]',
    '{"a":1 [1,2]}',
    "[1,2],3",
    "[1,2]]",
    "[1,2",
    "",
    " ",
    "\ufeff\ufeff[1,2]",
  ])("%p is no JSON, cut at each comma", (text) => {
    expect(() => parsed(text, 1)).toThrow(SyntaxError);
  });

  test("a mark of the byte order at the head is not part of the value", () => {
    expect(parsed("\ufeff[1,2]", 1).value).toEqual([1, 2]);
    expect(parsed('\ufeff"\ufeff"', 1).value).toBe("\ufeff");
  });

  test("a large body takes many steps, and is what JSON.parse makes of it", () => {
    const rows = Array.from({ length: 5_000 }, (_, at) => ({
      [`k${at}`]: at,
      text: 'a "quoted"\n word',
      list: [at, [], {}],
    }));
    const text = JSON.stringify({ rows, __proto__: null, last: { a: 1 } });
    const { value, steps } = parsed(text, 1_000_000);
    expect(JSON.stringify(value)).toBe(text);
    expect(steps).toBeGreaterThan(10);
  });

  test.each([
    '["aaaa", "b\\n\\u00e9\\ud83d\\ude00\\/ccc", 1]',
    '{"a long name":"a long value", "b":["long text", {"c":"long\\ttext"}], "another name":2}',
    '["\\u0080\\u07ff\\u0800\\uffff \\ud800\\udc00 \\ud801\\udc01 \\ud840\\udc00 \\udbff\\udfff"]',
    '["half \\ud83d of a pair", "and \\ude00 the other"]',
    ' "a text by itself" ',
    '["é€😀 beyond Latin"]',
    '["", "", "x"]',
  ])("%p, where every string is a long one", (text) => {
    expect(parsed(text, 1_000_000, 0).value).toEqual(JSON.parse(text));
    expect(parsed(text, 1, 3).value).toEqual(JSON.parse(text));
  });

  test.each([
    '["a\u0001b"]',
    '["a\nb"]',
    '["\\x41"]',
    '["\\u12"]',
    '["\\u00g0"]',
    '["\\ud83d\\u00"]',
    '["aaaa" "bbbb"]',
    '["aaaa":"bbbb"]',
    '{"aaaa"}',
    '{"aaaa" "bbbb"}',
    '{"aaaa":"bbbb" "cccc":1}',
    '{"aaaa":1 "bbbb"}',
    '["aaaa',
    '"aaaa" "bbbb"',
    '["aaaa"],',
  ])("%p is no JSON, where every string is a long one", (text) => {
    expect(() => parsed(text, 1_000_000, 0)).toThrow(SyntaxError);
    expect(() => parsed(text, 1, 0)).toThrow(SyntaxError);
  });

  test("a name that repeats keeps its first place and its last value; __proto__ is a name like any other", () => {
    const text = '{"a":[1,2],"__proto__":{"x":[1,2]},"b":1,"a":{"c":[3,4]}}';
    const { value } = parsed(text, 1);
    expect(JSON.stringify(value)).toBe(JSON.stringify(JSON.parse(text)));
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
  });

  test("bytes over which a long string was written are said to be used up", () => {
    const [plain, escaped] = ['["aaaa bbbb", 1]', '["aaaa\\tbbbb", 1]'];
    expect(parsed(plain, 1, 3)).toMatchObject({ isIntact: true, text: plain });
    expect(parsed(escaped, 1, 3)).toMatchObject({ isIntact: false, value: ["aaaa\tbbbb", 1] });
    expect(parsed(escaped, 1)).toMatchObject({ isIntact: true, text: escaped });
  });
});
