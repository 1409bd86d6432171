import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  hashKey,
  isKey,
  key_chars,
  key_random_bytes,
  keyPattern,
  newKey,
  secretOf,
} from "../../../src/core/auth/credential.ts";

const someKey = fc
  .uint8Array({ minLength: key_random_bytes, maxLength: key_random_bytes })
  .filter(hasEnough)
  .map(newKey);

function hasEnough(bytes: Uint8Array): boolean {
  return bytes.filter((byte) => byte < 248).length >= 32;
}

describe("the form of a key", () => {
  test("every new key has the published form and a checksum that holds", () => {
    fc.assert(
      fc.property(someKey, (key) => {
        expect(key).toMatch(/^slk_[0-9A-Za-z]{38}$/);
        expect(key).toHaveLength(key_chars);
        expect(isKey(key)).toBe(true);
      }),
    );
  });

  test("the checksum is CRC-32 in six base62 digits, as other people's scanners will compute it", () => {
    const head = `slk_${"0".repeat(32)}`;
    const key = newKey(new Uint8Array(64));
    expect(key.slice(0, 36)).toBe(head);
    let crc = 0;
    for (const digit of key.slice(36)) {
      crc = crc * 62 + "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".indexOf(digit);
    }
    expect(crc).toBe(crc32(head));
  });

  test("one changed, missing or doubled character is seen without a look-up", () => {
    fc.assert(
      fc.property(someKey, fc.nat(key_chars - 1), fc.constantFrom(..."09AZaz_-é"), (key, at, character) => {
        const changed = key.slice(0, at) + character + key.slice(at + 1);
        expect(isKey(changed)).toBe(changed === key);
        expect(isKey(key.slice(0, at) + key.slice(at + 1))).toBe(false);
        expect(isKey(key.slice(0, at) + key[at] + key.slice(at))).toBe(false);
      }),
    );
  });

  test("no other text whatever is a key", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 50 }), (text) => !isKey(text)),
      { numRuns: 50 },
    );
    for (const text of [
      "",
      "slk_",
      `slk_${"a".repeat(38)}`,
      `slk_${"é".repeat(38)}`,
      `${newKey(new Uint8Array(64))}\n`,
    ]) {
      expect(isKey(text)).toBe(false);
    }
  });

  test("the characters are evenly likely", () => {
    const seen = new Map<string, number>();
    const rounds = 4000;
    for (let round = 0; round < rounds; round++) {
      for (const character of newKey(crypto.getRandomValues(new Uint8Array(key_random_bytes))).slice(4, 36)) {
        seen.set(character, (seen.get(character) ?? 0) + 1);
      }
    }
    const expected = (rounds * 32) / 62;
    expect(seen.size).toBe(62);
    // The bound is seven standard deviations, so the test fails by chance less than once in ten billion runs.
    for (const count of seen.values()) expect(Math.abs(count - expected)).toBeLessThan(7 * Math.sqrt(expected));
  });

  test("too little chance is an error, never a weaker key", () => {
    expect(() => newKey(new Uint8Array(31))).toThrow(RangeError);
    expect(() => newKey(new Uint8Array(64).fill(255))).toThrow(RangeError);
  });

  test("the published expression finds a key in running text, and only whole ones", () => {
    const key = newKey(crypto.getRandomValues(new Uint8Array(64)));
    const found = (text: string) => text.match(new RegExp(keyPattern, "g"));
    expect(found(`export KEY="${key}" # ${key}.`)).toEqual([key, key]);
    expect(found(`x${key}`)).toBeNull();
    expect(found(`${key}x`)).toBeNull();
  });

  test("what is stored of a key is its SHA-256 and twelve of its characters", async () => {
    const key = newKey(crypto.getRandomValues(new Uint8Array(64)));
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(key)));
    expect(hashKey(key)).toEqual(digest);
    expect(secretOf(key)).toEqual({ hash: digest, prefix: key.slice(0, 8), suffix: key.slice(38) });
  });
});

/** CRC-32 (IEEE 802.3), computed bit by bit, independently of the code under test. */
function crc32(text: string): number {
  let crc = 0xffffffff;
  for (const byte of new TextEncoder().encode(text)) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return (crc ^ 0xffffffff) >>> 0;
}
