/** Instants as text in a time zone, as errors and commands show them. */
import { expect, test } from "bun:test";
import { instantIn, isZone } from "../../../src/core/time/written.ts";

test("an instant in a zone is its date and time there, with the zone", () => {
  const at = new Date("2026-11-30T23:00:00Z");
  expect(instantIn(at, "Europe/Berlin")).toBe("1 December 2026 00:00 (Europe/Berlin)");
  expect(instantIn(at, "Europe/Berlin", { year: false })).toBe("1 December 00:00 (Europe/Berlin)");
  expect(instantIn(at, "Asia/Kathmandu", { year: false })).toBe("1 December 04:45 (Asia/Kathmandu)");
  expect(instantIn(at, "UTC", { year: false })).toBe("30 November 23:00 (UTC)");
});

test("a zone is a name of the time zone database, and no offset", () => {
  for (const name of ["Europe/Berlin", "UTC", "Atlantic/Azores"]) expect([name, isZone(name)]).toEqual([name, true]);
  for (const name of ["Europe/Berln", "+01:00", "", "UTC+3", "Berlin"])
    expect([name, isZone(name)]).toEqual([name, false]);
});
