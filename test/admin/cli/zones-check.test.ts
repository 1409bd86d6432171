/** The offsets of a time zone that `sluice doctor` compares. */
import { expect, test } from "bun:test";
import { offsetsIn } from "../../../src/admin/cli/zones-check.ts";

test("an instant of an hour that comes twice is told from the other by its offset", () => {
  const offset_ms = offsetsIn("Europe/Berlin");
  expect(offset_ms(new Date("2026-10-25T00:30:00Z"))).toBe(7_200_000);
  expect(offset_ms(new Date("2026-10-25T01:30:00Z"))).toBe(3_600_000);
  expect(offsetsIn("America/St_Johns")(new Date("2026-01-01T00:00:00.999Z"))).toBe(-12_600_000);
});
