/** A FOCUS dataset: each charge lies in its period, and each period in its calendar month. */
import { describe, expect, test } from "bun:test";
import { ManagementError } from "../../src/management/error.ts";
import { focusGroups, reportFocus } from "../../src/management/focus.ts";
import type { Report, Row } from "../../src/management/report-shape.ts";

const row: Row = {
  organizationId: "org_1",
  organization: "acme",
  organizationName: "Acme",
  keyId: "key_1",
  key: "app",
  model: "acme/writer-1",
  operation: "chat.completions",
  requests: 2,
  inputTokens: 100,
  cachedInputTokens: 20,
  cacheWriteTokens: 3,
  outputTokens: 40,
  reasoningTokens: 10,
  units: 2_500_000,
  extraUnits: 0,
  unchargedUnits: 0,
  cost: "10",
};

/** The rows as a reader of CSV sees them; no cell here holds a comma. */
function read(rows: Partial<Row>[], price: Report["price"] = euros) {
  const report = {
    asOf: new Date("2026-11-23T10:00:00Z"),
    rows: rows.map((one) => ({ ...row, ...one })),
    total: row,
    price,
  };
  const [names = "", ...lines] = reportFocus(report as unknown as Report);
  return lines.map((line) => {
    const cells = line.trimEnd().split(",");
    return Object.fromEntries(
      names
        .trimEnd()
        .split(",")
        .map((name, at) => [name, cells[at]]),
    );
  });
}
const euros = { currency: "EUR", perMillionUnits: 4, provider: "Acme Inference" };

describe("the periods of a FOCUS report", () => {
  for (const [by, from, to, month] of [
    ["month", "2026-02-01", "2026-03-01T00:00:00Z", "2026-03-01T00:00:00Z"],
    ["month", "2028-02-01", "2028-03-01T00:00:00Z", "2028-03-01T00:00:00Z"],
    ["month", "2026-01-01", "2026-02-01T00:00:00Z", "2026-02-01T00:00:00Z"],
    ["month", "2026-12-01", "2027-01-01T00:00:00Z", "2027-01-01T00:00:00Z"],
    ["day", "2026-01-31", "2026-02-01T00:00:00Z", "2026-02-01T00:00:00Z"],
    ["day", "2026-11-23", "2026-11-24T00:00:00Z", "2026-12-01T00:00:00Z"],
    ["hour", "2026-12-31T23:00:00Z", "2027-01-01T00:00:00Z", "2027-01-01T00:00:00Z"],
  ] as const) {
    test(`a ${by} from ${from} ends at ${to}, in the month that ends at ${month}`, () => {
      const startsAt = new Date(from);
      const [one] = read([{ [by]: by === "hour" ? startsAt : from.slice(0, by === "day" ? 10 : 7) }]);
      expect(one).toMatchObject({
        ChargePeriodStart: `${startsAt.toISOString().slice(0, 19)}Z`,
        ChargePeriodEnd: to,
        BillingPeriodStart: `${from.slice(0, 7)}-01T00:00:00Z`,
        BillingPeriodEnd: month,
      });
    });
  }
});

describe("a row of a FOCUS report", () => {
  test("of usage has its cost, its price and its tokens", () => {
    expect(read([{ day: "2026-11-23" }])[0]).toMatchObject({
      BilledCost: "10",
      BillingCurrency: "EUR",
      ChargeCategory: "Usage",
      ChargeDescription: "chat.completions with acme/writer-1",
      ConsumedQuantity: "163",
      PricingQuantity: "2500000",
      ResourceId: "key_1",
      SkuId: "acme/writer-1",
      x_OutputTokens: "40",
    });
  });

  test("has its team as sub account, and the labels of its key as tags", () => {
    const [one] = read([{ day: "2026-11-23", teamId: "team_1", team: "research", labels: { stage: "production" } }]);
    expect(one).toMatchObject({
      InvoiceId: "",
      SkuMeter: "Tokens",
      SkuPriceDetails: '"{""x_Operation"":""chat.completions""}"',
      SubAccountId: "team_1",
      SubAccountName: "research",
      SubAccountType: "Team",
      Tags: '"{""stage"":""production""}"',
    });
    expect(read([{ day: "2026-11-23" }])[0]).toMatchObject({ SubAccountId: "", SubAccountType: "", Tags: "{}" });
  });

  test("of an operator's entry has a cost, and nothing that was consumed", () => {
    const entry = {
      day: "2026-11-23",
      operation: "adjustment",
      units: -1_000_000,
      cost: "-4",
      model: null,
    };
    expect(read([entry])[0]).toMatchObject({
      BilledCost: "-4",
      ChargeCategory: "Adjustment",
      ChargeFrequency: "One-Time",
      ConsumedQuantity: "",
      ContractedUnitPrice: "",
      PricingQuantity: "",
      SkuId: "",
    });
  });

  test("needs a price", () => {
    expect(() => read([], null)).toThrow(ManagementError);
  });
});

test("a FOCUS report is by one period; days where none is named", () => {
  expect(focusGroups(null)).toStartWith("day,");
  for (const period of ["hour", "day", "month"]) expect(focusGroups(`${period}, ${period}`)).toStartWith(`${period},`);
  for (const wrong of ["key", "day,month", "day,key", "week", ""])
    expect(() => focusGroups(wrong)).toThrow("by hour, day, or month");
});
