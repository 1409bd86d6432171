// Money in sluice.yaml: prices of a million tokens and limits, exact, in one currency.
import { describe, expect, test } from "bun:test";
import { configured, problemsOf, withModel } from "./reading.ts";

const pricesOf = (prices: string) => {
  const text = withModel().replace(/"prices":\{[^}]*\}/, `"prices": ${prices}`);
  return configured(text).catalog.models.get("acme/writer-1")!.prices;
};
const said = (prices: string) => problemsOf(withModel().replace(/"prices":\{[^}]*\}/, `"prices": ${prices}`));

describe("a price", () => {
  test("of a million tokens is kept in picos for each", () => {
    const prices = pricesOf("{ input: 0.15, cached_input: 0.0375, cache_write: 0.1875, output: 0.60 }");
    expect(prices).toEqual({ input: 150_000, cachedInput: 37_500, cacheWrite: 187_500, output: 600_000 });
    expect(pricesOf("{ input: 0.000001, output: 90000 }")).toMatchObject({ input: 1, output: 90_000_000_000 });
    expect(pricesOf('{ input: "0.15", output: 0 }')).toMatchObject({ input: 150_000, output: 0 });
  });

  test("is read from the text: a double nearby is another price", () => {
    const message = "must be an amount from 0 to 90000, with 6 decimals at most";
    for (const price of [
      "0.1500000000000000001",
      "0.0000001",
      "1e-1",
      "0x10",
      "-1",
      "90000.000001",
      ".5",
      "+1",
      '"1 USD"',
    ])
      expect(said(`{ input: ${price}, output: 1 }`).join("\n")).toContain(message);
    expect(pricesOf("{ input: 0.150000000000, output: 1 }").input).toBe(150_000);
  });

  test("needs the currency beside it, because prices were units for a token once", () => {
    const [problem] = problemsOf(withModel({}, "metering: { lease_s: 60 }"));
    expect(problem).toContain("metering.currency: is missing");
    expect(problem).toContain(
      "a new price is the old one times price_per_million_units (without it: divided by 1,000)",
    );
    const [gone] = problemsOf("reports: { currency: EUR, price_per_million_units: 0.5 }").filter((one) =>
      one.includes("price_per_million_units"),
    );
    expect(gone).toContain("a new price is the old one times price_per_million_units");
  });
});

test("a currency is of ISO 4217 and has a million that is enough for a month, or is credits", () => {
  const currency = (name: string) => withModel({}, `metering: { currency: ${name} }`);
  expect(configured(currency("credits")).metering.currency).toBe("credits");
  expect(configured(currency("JPY")).metering.currency).toBe("JPY");
  expect(problemsOf(currency("IDR")).join()).toContain("Use credits");
  expect(problemsOf(currency("DOLLAR")).join()).toContain("ISO 4217");
  expect(problemsOf(currency("ABC")).join()).toContain("ISO 4217");
  expect(configured("plans: {}").metering.currency).toBe("USD");
});

test("a plan holds money", () => {
  const { plans } = configured("plans: { team: { session: 3, week: 15.50, month: 0.000000001 } }").catalog;
  expect(plans.get("team")).toMatchObject({ session: 3e9, week: 15_500_000_000, month: 1 });
  expect(configured("plans: { team: { month: 1000000 } }").catalog.plans.get("team")?.month).toBe(1e15);
});
