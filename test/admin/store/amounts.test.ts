/** Parsing and formatting of amounts of money as people type them. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { problemOfCurrency, typedNanos, wholeOf } from "../../../src/admin/store/amounts.ts";
import { decimalOf, nanos_per_one } from "../../../src/core/inference/money.ts";
import { forAll } from "../../core/protocol/for-all.ts";

test("decimal text is read back as the amount of which it was written", () => {
  forAll([fc.maxSafeInteger()], 100, (nanos) => {
    expect(wholeOf(decimalOf(nanos, 9), 9)).toBe(nanos);
  });
});

test("decimal text is refused where a whole number of nanos cannot say it", () => {
  for (const text of [
    "",
    ".",
    "1.",
    ".5",
    "1e3",
    "0x1",
    "1,000",
    "--1",
    "0.0000000001",
    "9007199.254740992",
    "1 2",
    "NaN",
  ])
    expect({ text, value: wholeOf(text, 9) }).toEqual({ text, value: null });
  expect(wholeOf("0.1000000000000", 9)).toBe(100_000_000);
  expect(wholeOf("-0", 9)).toBe(0);
});

test("an amount may name the service's currency, and no other", () => {
  for (const text of ["50", "50USD", "50 usd", " 50.00 "])
    expect(typedNanos(text, "USD")).toEqual({ nanos: 50 * nanos_per_one });
  expect(typedNanos("50EUR", "USD")).toEqual({ problem: "is in EUR, and this service counts in USD" });
  for (const text of ["9007200", "9781167USD", "99999999999999999999"])
    expect(typedNanos(text, "USD")).toEqual({ problem: "must be at most a million" });
  expect(typedNanos("fifty", "USD")).toHaveProperty("problem");
  expect(typedNanos("$50", "USD")).toHaveProperty("problem");
});

test("a currency whose million would be too little is refused with what to use", () => {
  for (const currency of ["USD", "EUR", "JPY", "INR", "credits"]) expect(problemOfCurrency(currency)).toBeNull();
  for (const currency of ["IDR", "VND"]) expect(problemOfCurrency(currency)).toContain("Use credits");
  for (const currency of ["usd", "XYZQ", "", "ABC"]) expect(problemOfCurrency(currency)).toContain("ISO 4217");
});
