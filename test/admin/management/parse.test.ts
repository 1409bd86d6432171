/**
 * Rules for texts that a JSON Schema cannot express: which texts are accepted, the error messages, and how a client
 * writes the texts.
 */
import { describe, expect, test } from "bun:test";
import { ManagementError } from "../../../src/admin/management/error.ts";
import * as parse from "../../../src/admin/management/parse.ts";
import { duration } from "../../../src/admin/management/shapes.ts";
import { id } from "../../../src/core/operations/fields.ts";
import { decode, encode } from "../../../src/core/schema/codec.ts";

function refusal(parsing: () => unknown): string {
  try {
    parsing();
  } catch (thrown) {
    if (thrown instanceof ManagementError) return thrown.message;
    throw thrown;
  }
  throw new Error("it was taken");
}

describe("networks of a key", () => {
  test("are addresses and networks, each once", () => {
    const given = ["10.0.0.0/8", "192.0.2.7", "2001:db8::/64", "2001:db8::/32", "10.0.0.0/8"];
    expect(parse.networks(given)).toEqual(given.slice(0, 4));
    expect(parse.networks([])).toEqual([]);
  });

  test.each(["", "ten", "10.0.0.0/33", "10.0.0", "2001:db8::/129"])("'%s' is none", (word) => {
    expect(refusal(() => parse.networks(["10.0.0.1", word]))).toStartWith(`'${word}' is not an address or a network.`);
  });

  test.each(["2001:db8::/65", "2001:db8::1", "2001:db8::/128"])("%s is less than a client has", (word) => {
    expect(refusal(() => parse.networks(["2001:db8::/64", word]))).toStartWith(`'${word}' is less than an IPv6 client`);
  });
});

describe("labels of a key", () => {
  test("are set by name, taken away with null, and in the order of their names", () => {
    const before = { stage: "test", team: "search" };
    expect(Object.entries(parse.labels({ team: null, area: "eu" }, before))).toEqual([
      ["area", "eu"],
      ["stage", "test"],
    ]);
    expect(parse.labels({ none: null }, before)).toEqual(before);
  });

  test("are twenty at most, after the change", () => {
    const twenty = Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`l${at}`, ""]));
    expect(parse.labels({ l0: null, more: "" }, twenty)).toHaveProperty("more");
    expect(refusal(() => parse.labels({ more: "" }, twenty))).toBe("A key can have at most 20 labels.");
  });
});

describe("an instant", () => {
  test("has a zone, or is the first moment of its day in UTC", () => {
    for (const [written, instant] of [
      ["2030-01-31T12:00:00+0130", "2030-01-31T10:30:00.000Z"],
      ["2030-01-31 12:00z", "2030-01-31T12:00:00.000Z"],
      ["2030-01-31t12:00:00.5z", "2030-01-31T12:00:00.500Z"],
      ["2028-02-29T00:00:00-05:30", "2028-02-29T05:30:00.000Z"],
      ["2030-01-31", "2030-01-31T00:00:00.000Z"],
    ] as const)
      expect([written, parse.instant(written).toISOString()]).toEqual([written, instant]);
  });

  test.each(["2030-02-30", "2030-13-01", "0000-01-01", "0001-01-01T00:00:00+01:00", "9999-12-31T23:30:00-01:00"])(
    "%s is none, in words",
    (word) => {
      expect(refusal(() => parse.instant(word))).toStartWith(`'${word}' is not an instant.`);
    },
  );

  test("of a report is the beginning of an hour between 2000 and 2200", () => {
    expect(parse.hour("2026-11").toISOString()).toBe("2026-11-01T00:00:00.000Z");
    expect(parse.hour("2000-01-01").getUTCFullYear()).toBe(2000);
    expect(parse.hour("2200-12-31").getUTCFullYear()).toBe(2200);
    expect(refusal(() => parse.hour("1999-12-31"))).toEndWith("not in 1999.");
    expect(refusal(() => parse.hour("2201-01-01"))).toEndWith("not in 2201.");
    expect(refusal(() => parse.hour("2026-11-01T00:30:00Z"))).toContain("is not the beginning of an hour");
  });
});

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
