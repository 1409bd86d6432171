// The pages format money with code of their own, because they import none of the server's code. Their texts must equal
// those of the server's core, to the nano.
import { expect, test } from "bun:test";
import fc from "fast-check";
import * as page from "../../../console/core/money.ts";
import { changeWords } from "../../../console/core/spend.ts";
import * as core from "../../../src/core/inference/money.ts";
import { times } from "../../harness/depth.ts";

const currencies = fc.constantFrom("USD", "EUR", "JPY", "KWD", "credits");
/** Small amounts, whole cents, and sums that a JavaScript number cannot represent exactly. */
const nanos = fc.oneof(
  fc.bigInt({ min: -(10n ** 8n), max: 10n ** 8n }),
  fc.bigInt({ min: -(10n ** 5n), max: 10n ** 5n }).map((cents) => cents * 10_000_000n),
  fc.bigInt({ min: -(10n ** 24n), max: 10n ** 24n }),
);
const numRuns = times(500, 20_000);

test("an amount is written as the core writes it, and read as it reads it", () => {
  fc.assert(
    fc.property(
      nanos,
      currencies,
      fc.constantFrom("nearest" as const, "down" as const),
      (amount, currency, rounding) => {
        const money = core.moneyOf(amount, currency);
        expect(page.moneyWritten(money, rounding)).toBe(core.moneyInWords(amount, currency, rounding));
        expect(page.moneyOf(amount, currency)).toEqual(money);
        expect(page.nanosOf(money)).toBe(amount);
      },
    ),
    { numRuns },
  );
});

test("a receipt says every nano", () => {
  fc.assert(
    fc.property(nanos, currencies, (amount, currency) => {
      const said = page.moneyInFull(core.moneyOf(amount, currency));
      expect(page.nanosOf({ amount: said.replaceAll(/[^\d.-]/g, "") })).toBe(amount);
    }),
    { numRuns },
  );
});

test("a sum has every nano, however large it is", () => {
  fc.assert(
    fc.property(fc.array(nanos, { maxLength: 50 }), currencies, (amounts, currency) => {
      const sum = amounts.reduce((total, amount) => total + page.nanosOf(core.moneyOf(amount, currency)), 0n);
      const exact = amounts.reduce((total, amount) => total + amount, 0n);
      expect(page.moneyOf(sum, currency)).toEqual(core.moneyOf(exact, currency));
    }),
    { numRuns },
  );
});

test("money that people know", () => {
  const dollars = (amount: string) => page.moneyWritten({ amount, currency: "USD" });
  expect(dollars("2200.181400000")).toBe("$2,200.18");
  expect(dollars("0.000213440")).toBe("$0.00021");
  expect(dollars("0.000000000")).toBe("$0.00");
  expect(page.priceWritten({ amount: "0.012500", currency: "USD" })).toBe("$0.0125");
  expect(page.priceWritten({ amount: "3.000000", currency: "USD" })).toBe("$3.00");
  expect(page.moneyShort(1500, "USD")).toBe("$1.5K");
  expect(page.moneyShort(0.0025, "USD")).toBe("$0.0025");
  expect([changeWords(112n, 100n), changeWords(96n, 100n), changeWords(100n, 100n), changeWords(5n, 0n)]).toEqual([
    "+12 %",
    "−4.0 %",
    "the same",
    null,
  ]);
});
