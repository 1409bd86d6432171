/** The values that a typed client writes are those that the service reads. */
import { expect, test } from "bun:test";
import { duration } from "../../../src/admin/management/shapes.ts";
import { id } from "../../../src/admin/store/shapes.ts";
import { decode, encode } from "../../../src/core/schema/codec.ts";

test("a duration is written so that it is read as the same", () => {
  const shape = duration("Of a grace.");
  for (const [written, ms] of [
    ["0s", 0],
    ["90s", 90_000],
    ["30m", 1_800_000],
    ["7d", 604_800_000],
  ] as const) {
    expect(decode(shape, written)).toBe(ms);
    expect(decode(shape, encode(shape, ms))).toBe(ms);
  }
});

test("an id has the form of its kind", () => {
  expect(id("key")).toMatchObject({ type: "string", pattern: "^key_[0-9a-f]{32}$" });
});
