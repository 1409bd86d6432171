// Texts that may be names, and other texts made safe for a terminal.
import { expect, test } from "bun:test";
import { isPlain, plain, plainJson } from "../../../src/core/inference/plain-text.ts";

const codes = [
  ...Array.from({ length: 0x20 }, (_, code) => code),
  ...Array.from({ length: 0x21 }, (_, index) => 0x7f + index),
  ...[0x061c, 0x200e, 0x200f, 0x2028, 0x2029, 0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2066, 0x2067, 0x2068, 0x2069],
];

test("a name has no control character, line end, half of a character, or one that turns the text", () => {
  for (const code of codes) {
    const text = `a${String.fromCharCode(code)}b`;
    expect([code, isPlain(text), plain(text)]).toEqual([code, false, "a?b"]);
  }
  expect(isPlain("\ud83d")).toBe(false);
  for (const name of ["", "Ann O'Neill", "Zoë", "שלום", "علی‌رضا", "山田 太郎", "👩‍💻", "a\u00a0b"]) {
    expect(isPlain(name)).toBe(true);
    expect(plain(name)).toBe(name);
  }
});

test("JSON says the same with these characters escaped", () => {
  const value = { name: codes.map((code) => String.fromCharCode(code)).join("") };
  const shown = plainJson(JSON.stringify(value, null, 2));
  expect(JSON.parse(shown)).toEqual(value);
  expect(isPlain(shown.replaceAll("\n", ""))).toBe(true);
});
