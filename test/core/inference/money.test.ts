import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { costOf, moneyInWords, moneyOf, nanos_per_one, tokensFor } from "../../../src/core/inference/money.ts";
import { forAll } from "../protocol/for-all.ts";

const tokens = fc.integer({ min: 0, max: 1_000_000_000 });
const price = fc.integer({ min: 0, max: 1_000_000_000_000 });

describe("the cost of tokens", () => {
  test("is the exact product, rounded up to a whole nano", () => {
    expect(costOf(812, 150_000)).toBe(121_800);
    expect(costOf(1, 1)).toBe(1);
    expect(costOf(0, 600_000)).toBe(0);
    forAll([tokens, price], 100, (tokens, price) => {
      const exact = BigInt(tokens) * BigInt(price);
      const cost = costOf(tokens, price);
      if (cost === Number.MAX_SAFE_INTEGER) return;
      expect(BigInt(cost) * 1000n >= exact && (BigInt(cost) - 1n) * 1000n < exact).toBe(true);
    });
  });

  test("never exceeds an amount that has room for so many tokens, and one token more does", () => {
    forAll(
      [fc.integer({ min: 0, max: 1_000_000 * nanos_per_one }), fc.integer({ min: 1, max: 1e12 })],
      100,
      (nanos, price) => {
        const tokens = tokensFor(nanos, price);
        if (tokens > 1e12) return;
        expect(BigInt(tokens) * BigInt(price) <= BigInt(nanos) * 1000n).toBe(true);
        expect(BigInt(tokens + 1) * BigInt(price) > BigInt(nanos) * 1000n).toBe(true);
      },
    );
    expect(tokensFor(5, 0)).toBe(Number.POSITIVE_INFINITY);
  });
});

describe("decimal text", () => {
  test("has nine decimals", () => {
    expect(moneyOf(213_440, "USD")).toEqual({ amount: "0.000213440", currency: "USD" });
    expect(moneyOf(-1, "USD").amount).toBe("-0.000000001");
    expect(moneyOf(100_000_000_000_000_001n, "EUR").amount).toBe("100000000.000000001");
  });
});

describe("money as people read it", () => {
  test("has the digits of its currency, and two significant ones below its smallest coin", () => {
    const read = [
      moneyInWords(50 * nanos_per_one, "USD"),
      moneyInWords(1_204_500_000_000, "EUR"),
      moneyInWords(213_440, "USD"),
      moneyInWords(0, "USD"),
      moneyInWords(1, "USD"),
      moneyInWords(1_204_500_000_000, "JPY"),
      moneyInWords(3_500_000_000, "credits"),
      moneyInWords(-2_000_000_000, "USD"),
      moneyInWords(10n ** 17n, "USD"),
    ];
    expect(read).toEqual([
      ...["$50.00", "€1,204.50", "$0.00021", "$0.00", "$0.000000001"],
      ...["¥1,205", "3.5 credits", "-$2.00", "$100,000,000.00"],
    ]);
  });

  test("never says that more is left than there is", () => {
    expect(moneyInWords(1_999_999_999, "USD")).toBe("$2.00");
    expect(moneyInWords(1_999_999_999, "USD", "down")).toBe("$1.99");
    expect(moneyInWords(1_999_999, "USD", "down")).toBe("$0.0019");
  });
});
