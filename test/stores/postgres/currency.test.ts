/** The currency of a database is set at its first start, and cannot change. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { claimCurrency, currencyOf, problemOfCurrencies } from "../../../src/stores/postgres/currency.ts";
import { databaseKinds } from "../../harness/depth.ts";
import { databaseForTests } from "./databases.ts";

setDefaultTimeout(60_000);

describe.each(databaseKinds(import.meta.path))("on %s", (kind) => {
  const db = databaseForTests(kind);
  test("a new database takes the first currency, whoever comes at once, and keeps it", async () => {
    expect(await currencyOf(db)).toBeNull();
    const claimed = await Promise.all(["USD", "EUR", "credits"].map((currency) => claimCurrency(db, currency)));
    const [kept] = claimed;
    expect(new Set(claimed)).toEqual(new Set([kept!]));
    expect(await claimCurrency(db, "GBP")).toBe(kept!);
    expect(await currencyOf(db)).toBe(kept!);
  });

  test("an amount is written there as everywhere else", async () => {
    const currency = await currencyOf(db);
    for (const [nanos, amount] of [
      [213_440, "0.000213440"],
      [-5, "-0.000000005"],
      [0, "0.000000000"],
      [50_000_000_000, "50.000000000"],
    ] as const) {
      const [row] = await db.query<{ money: object }>("select usage_money($1) as money", [nanos]);
      expect(row!.money).toEqual({ amount, currency });
    }
  });
});

test("another currency is refused, and both are named", () => {
  expect(problemOfCurrencies("USD", "USD")).toBeNull();
  expect(problemOfCurrencies("USD", "EUR")).toStartWith("This database counts in USD; sluice.yaml says EUR. ");
});
