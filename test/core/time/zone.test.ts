/** Instants in the words of a zone, as errors and commands say them. */
import { describe, expect, test } from "bun:test";
import { instantIn, isZone, offsetsIn } from "../../../src/core/time/zone.ts";

describe("an instant in a zone", () => {
  test("is its date and time there, with the zone", () => {
    const at = new Date("2026-11-30T23:00:00Z");
    expect(instantIn(at, "Europe/Berlin")).toBe("1 December 2026 00:00 (Europe/Berlin)");
    expect(instantIn(at, "Europe/Berlin", { year: false })).toBe("1 December 00:00 (Europe/Berlin)");
    expect(instantIn(at, "Asia/Kathmandu", { year: false })).toBe("1 December 04:45 (Asia/Kathmandu)");
    expect(instantIn(at, "UTC", { year: false })).toBe("30 November 23:00 (UTC)");
  });

  test("is told apart from the hour that comes twice by nothing but its offset", () => {
    const offset_ms = offsetsIn("Europe/Berlin");
    expect(offset_ms(new Date("2026-10-25T00:30:00Z"))).toBe(7_200_000);
    expect(offset_ms(new Date("2026-10-25T01:30:00Z"))).toBe(3_600_000);
    expect(offsetsIn("America/St_Johns")(new Date("2026-01-01T00:00:00.999Z"))).toBe(-12_600_000);
  });
});

test("a zone is a name of the time zone database, and no offset", () => {
  for (const name of ["Europe/Berlin", "UTC", "Atlantic/Azores"]) expect([name, isZone(name)]).toEqual([name, true]);
  for (const name of ["Europe/Berln", "+01:00", "", "UTC+3", "Berlin"])
    expect([name, isZone(name)]).toEqual([name, false]);
});
