// Small secrets at rest can be decrypted with the current key or the one before it, and only in the place for which they
// were encrypted (`about`).

import { expect, test } from "bun:test";
import fc from "fast-check";
import { sealing, secretKeysIn } from "../../src/config/sealed.ts";

const random = (bytes: number) => crypto.getRandomValues(new Uint8Array(bytes));
const [first, second] = [random(32), random(32)];

test("a secret opens with its key and in its place, and in no other", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme", maxLength: 200 }), fc.string(), fc.string(), (secret, about, other) => {
      const { seal, open } = sealing([first], random);
      const sealed = seal(secret, about);
      expect(open(sealed, about)).toBe(secret.toWellFormed());
      if (other !== about) expect(open(sealed, other)).toBeNull();
      expect(sealing([second], random).open(sealed, about)).toBeNull();
    }),
    { numRuns: 50 },
  );
});

test("no changed, cut or empty secret opens", () => {
  const { seal, open } = sealing([first], random);
  const sealed = seal("refresh", "a");
  for (let place = 0; place < sealed.length; place++) {
    const changed = sealed.slice();
    changed[place]! ^= 1;
    expect(open(changed, "a")).toBeNull();
    expect(open(sealed.subarray(0, place), "a")).toBeNull();
  }
});

test("the same secret is sealed differently each time", () => {
  const { seal } = sealing([first], random);
  expect(seal("refresh", "a")).not.toEqual(seal("refresh", "a"));
});

test("while a key changes, both open, the new one seals, and what the old one sealed is said to be outdated", () => {
  const before = sealing([first], random).seal("refresh", "a");
  const changing = sealing([second, first], random);
  expect(changing.open(before, "a")).toBe("refresh");
  expect(changing.isOutdated(before)).toBe(true);
  const after = changing.seal("refresh", "a");
  expect(changing.isOutdated(after)).toBe(false);
  const changed = sealing([second], random);
  expect(changed.open(after, "a")).toBe("refresh");
  expect(changed.open(before, "a")).toBeNull();
});

test("keys are 32 bytes in base64, one or two", () => {
  const text = Buffer.from(first).toString("base64");
  expect(secretKeysIn(text)).toEqual([first]);
  expect(secretKeysIn(Buffer.from(first).toString("base64url"))).toEqual([first]);
  for (const wrong of ["", "x", text.slice(4), `${text} ${text} ${text}`, `${text}!`])
    expect(secretKeysIn(wrong)).toBeNull();
});
