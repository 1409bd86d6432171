/** Instants as text in a time zone, as errors and commands show them. */
import { expect, test } from "bun:test";
import { iso } from "../../../src/core/admission/limit-words.ts";
import { instantIn, isZone } from "../../../src/core/time/written.ts";

test("an instant in a zone is its date and time there, with the zone", () => {
  const at = new Date("2026-11-30T23:00:00Z");
  expect(instantIn(at, "Europe/Berlin")).toBe("1 December 2026 00:00 (Europe/Berlin)");
  expect(instantIn(at, "Europe/Berlin", { year: false })).toBe("1 December 00:00 (Europe/Berlin)");
  expect(instantIn(at, "Asia/Kathmandu", { year: false })).toBe("1 December 04:45 (Asia/Kathmandu)");
  expect(instantIn(at, "UTC", { year: false })).toBe("30 November 23:00 (UTC)");
});

test("an instant is written the same however often, and however many others are", () => {
  const first = Date.UTC(2026, 10, 30);
  for (let round = 0; round < 2; round++)
    for (let at_ms = first; at_ms < first + 3_000; at_ms++) {
      expect(iso(new Date(at_ms))).toBe(new Date(at_ms).toISOString());
      expect(iso(new Date(first))).toBe("2026-11-30T00:00:00.000Z");
    }
  expect(() => iso(new Date(Number.NaN))).toThrow(RangeError);
});

test("a zone is a name of the time zone database, and no offset", () => {
  for (const name of ["Europe/Berlin", "UTC", "Atlantic/Azores"]) expect([name, isZone(name)]).toEqual([name, true]);
  for (const name of ["Europe/Berln", "+01:00", "", "UTC+3", "Berlin"])
    expect([name, isZone(name)]).toEqual([name, false]);
});
