import { expect, test } from "bun:test";
import fc from "fast-check";
import { Fingerprints } from "../../../src/features/secrets/fingerprints.ts";

const hash = (of: number | string) => Bun.SHA256.hash(String(of)) as Uint8Array;
const all_max = 1_000_000;

test("what was added is found, alone and among a hundred thousand others, and nothing else is", () => {
  const set = new Fingerprints(all_max);
  const count = 100_000;
  for (let at = 0; at < count; at++) set.add(hash(at).subarray(0, 8));
  expect(set.size).toBe(count);
  for (let at = 0; at < count; at++) if (!set.has(hash(at))) throw new Error(`${at} is not found`);
  for (let at = count; at < 2 * count; at++) if (set.has(hash(at))) throw new Error(`${at} is found`);
  expect(set.bytes).toBeLessThanOrEqual(2 * 1024 * 1024);
});

test("it holds what a Set of the same texts holds, whatever the bytes, one by one and many at once", () => {
  // Only a few different byte values, so that many fingerprints share a position in the table.
  const fingerprint = fc.array(fc.constantFrom(0, 1, 128, 255), { minLength: 8, maxLength: 8 });
  fc.assert(
    fc.property(fc.array(fingerprint), fc.array(fingerprint), fingerprint, (singly, together, asked) => {
      const set = new Fingerprints(all_max);
      for (const one of singly) set.add(Uint8Array.from(one));
      set.add(Uint8Array.from(together.flat()));
      const expected = new Set([...singly, ...together].map(String));
      const isThere = (one: number[]) => set.has(Uint8Array.from(one));
      // Eight zeros are stored as the fingerprint 0,0,0,0,1,0,0,0, so the set cannot distinguish these two, and neither
      // is looked up.
      const isFair = (one: number[]) => one.some((byte) => byte !== 0) && String(one) !== "0,0,0,0,1,0,0,0";
      return (
        [...singly, ...together].every(isThere) && (!isFair(asked) || isThere(asked) === expected.has(String(asked)))
      );
    }),
  );
});

test("beyond its bound nothing is added, and what is in it stays", () => {
  const set = new Fingerprints(1000);
  for (let at = 0; at < 3000; at++) set.add(hash(at).subarray(0, 8));
  expect(set.size).toBe(1000);
  expect(set.has(hash(999))).toBe(true);
  expect(set.has(hash(1000))).toBe(false);
  set.add(hash(5).subarray(0, 8));
  expect(set.size).toBe(1000);
});
