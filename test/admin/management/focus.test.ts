/** A FOCUS dataset: each charge lies in its period, and each period in its calendar month. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { ManagementError } from "../../../src/admin/management/error.ts";
import { focusGroups, reportFocus } from "../../../src/admin/management/focus.ts";
import type { Report, Row } from "../../../src/admin/management/report-shape.ts";

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
  nanos: 2_500_000,
  extraNanos: 0,
  unchargedNanos: 0,
  inputNanos: 1_000_000,
  cachedInputNanos: 500_000,
  cacheWriteNanos: 0,
  outputNanos: 1_000_000,
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
const euros = { currency: "EUR", perMillionNanos: 4, provider: "Acme Inference" };

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
  test("of usage has a line for each kind of token, with its cost, its price and its tokens", () => {
    const lines = read([{ day: "2026-11-23" }]);
    expect(lines[0]).toMatchObject({
      BilledCost: "4",
      BillingCurrency: "EUR",
      ChargeCategory: "Usage",
      ChargeDescription: "Input Tokens: chat.completions with acme/writer-1",
      ConsumedQuantity: "100",
      PricingQuantity: "1000000",
      ResourceId: "key_1",
      SkuId: "acme/writer-1",
      x_InputTokens: "100",
      x_OutputTokens: "0",
      x_Requests: "2",
    });
    expect(
      lines.map((line) => [
        line.SkuMeter,
        line.BilledCost,
        line.ConsumedQuantity,
        line.PricingQuantity,
        line.x_Requests,
      ]),
    ).toEqual([
      ["Input Tokens", "4", "100", "1000000", "2"],
      ["Cached Input Tokens", "2", "20", "500000", "0"],
      ["Cache Write Tokens", "0", "3", "0", "0"],
      ["Output Tokens", "4", "40", "1000000", "0"],
    ]);
    expect(lines[3]).toMatchObject({ x_OutputTokens: "40", x_ReasoningTokens: "10" });
    expect(new Set(lines.map(({ SkuPriceId }) => SkuPriceId)).size).toBe(4);
  });

  test("whose kinds nobody knows is one line with all tokens; a part of it that is of no kind is a line of its own", () => {
    const unsplit = { inputNanos: 0, cachedInputNanos: 0, cacheWriteNanos: 0, outputNanos: 0 };
    const [whole, ...others] = read([{ ...unsplit }]);
    expect(whole).toMatchObject({
      SkuMeter: "Tokens",
      BilledCost: "10",
      ConsumedQuantity: "163",
      x_OutputTokens: "40",
    });
    expect(others).toEqual([]);
    expect(read([{ outputNanos: 900_000 }]).at(-1)).toMatchObject({
      ...{ SkuMeter: "Tokens", BilledCost: "0.4", ConsumedQuantity: "0", PricingQuantity: "100000", x_Requests: "0" },
    });
    const failed = { ...unsplit, nanos: 0, inputTokens: 0, cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens: 0 };
    expect(read([failed])).toMatchObject([{ SkuMeter: "Tokens", BilledCost: "0", x_Requests: "2" }]);
  });

  test("adds up over its lines to what it has, whatever that is", () => {
    const amount = fc.oneof(fc.constant(0), fc.nat(1_000_000));
    const measured = fc.record({
      requests: amount,
      inputTokens: amount,
      cachedInputTokens: amount,
      cacheWriteTokens: amount,
      outputTokens: amount,
      reasoningTokens: amount,
      extraNanos: amount,
      unchargedNanos: amount,
      inputNanos: amount,
      cachedInputNanos: amount,
      cacheWriteNanos: amount,
      outputNanos: amount,
    });
    fc.assert(
      fc.property(measured, fc.oneof(fc.constant(0), fc.integer({ min: -1000, max: 1000 })), (one, unsplit) => {
        const nanos = one.inputNanos + one.cachedInputNanos + one.cacheWriteNanos + one.outputNanos + unsplit;
        const lines = read([{ ...one, nanos }]);
        const sum = (name: string) => lines.reduce((total, line) => total + Number(line[name]), 0);
        const tokens = one.inputTokens + one.cachedInputTokens + one.cacheWriteTokens + one.outputTokens;
        expect({
          ConsumedQuantity: sum("ConsumedQuantity"),
          PricingQuantity: sum("PricingQuantity"),
          x_Nanos: sum("x_Nanos"),
          // At 4 for a million nanos, six decimals are exact.
          cost: Math.round(sum("BilledCost") * 1e6),
        }).toEqual({ ConsumedQuantity: tokens, PricingQuantity: nanos, x_Nanos: nanos, cost: nanos * 4 });
        for (const [column, measure] of Object.entries(measureColumns)) expect(sum(column)).toBe(one[measure]);
      }),
    );
  });

  test("has its team as sub account, and the labels of its key as tags", () => {
    const [one] = read([{ day: "2026-11-23", teamId: "team_1", team: "research", labels: { stage: "production" } }]);
    expect(one).toMatchObject({
      InvoiceId: "",
      SkuMeter: "Input Tokens",
      SkuPriceDetails: '"{""x_Operation"":""chat.completions""}"',
      SubAccountId: "team_1",
      SubAccountName: "research",
      SubAccountType: "Team",
      Tags: '"{""stage"":""production""}"',
    });
    expect(read([{ day: "2026-11-23" }])[0]).toMatchObject({ SubAccountId: "", SubAccountType: "", Tags: "{}" });
  });

  test("says of its key, model and operation what is so of it, however many rows are alike", () => {
    const rows = [
      { keyId: "key_1", key: "one" },
      { keyId: "key_2", key: "two" },
      { keyId: "key_1", key: "one", model: "acme/painter-1" },
      { keyId: "key_1", key: "one", operation: "messages" },
      { keyId: "key_1", key: "one", day: "2026-11-24" },
      { keyId: "key_1", key: "one" },
    ].map((one) => ({ day: "2026-11-23", ...one, outputNanos: 0, cachedInputNanos: 0, inputNanos: 0 }));
    expect(
      read(rows).map(({ ResourceName, SkuId, x_Operation, ChargePeriodStart }) => [
        ResourceName,
        SkuId,
        x_Operation,
        ChargePeriodStart?.slice(8, 10),
      ]),
    ).toEqual([
      ["one", "acme/writer-1", "chat.completions", "23"],
      ["two", "acme/writer-1", "chat.completions", "23"],
      ["one", "acme/painter-1", "chat.completions", "23"],
      ["one", "acme/writer-1", "messages", "23"],
      ["one", "acme/writer-1", "chat.completions", "24"],
      ["one", "acme/writer-1", "chat.completions", "23"],
    ]);
  });

  test("of an operator's entry has a cost, and nothing that was consumed", () => {
    const entry = {
      ...{ day: "2026-11-23", operation: "adjustment", model: null, nanos: -1_000_000, cost: "-4", requests: 0 },
      keyId: null,
      ...{ inputTokens: 0, cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens: 0, reasoningTokens: 0 },
      ...{ inputNanos: 0, cachedInputNanos: 0, cacheWriteNanos: 0, outputNanos: 0 },
    };
    expect(read([entry])).toMatchObject([
      {
        BilledCost: "-4",
        ChargeCategory: "Adjustment",
        ChargeFrequency: "One-Time",
        ConsumedQuantity: "",
        ContractedUnitPrice: "",
        PricingQuantity: "",
        SkuId: "",
        SkuMeter: "",
        SkuPriceId: "",
        x_Nanos: "-1000000",
      },
    ]);
  });

  test("of a late settlement is usage of its key", () => {
    const late = {
      ...{ day: "2026-11-23", operation: "adjustment", model: "acme/writer-1", keyId: "key_1", requests: 0 },
      ...{ inputTokens: 0, cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens: 33, reasoningTokens: 0 },
      ...{ nanos: 330, cost: "0.00132", inputNanos: 0, cachedInputNanos: 0, cacheWriteNanos: 0, outputNanos: 330 },
    };
    expect(read([late])).toMatchObject([
      { ChargeCategory: "Usage", ConsumedQuantity: "33", PricingQuantity: "330", ResourceId: "key_1", x_Requests: "0" },
    ]);
  });

  test("needs a price", () => {
    expect(() => read([], null)).toThrow(ManagementError);
  });
});

const measureColumns = {
  x_Requests: "requests",
  x_InputTokens: "inputTokens",
  x_CachedInputTokens: "cachedInputTokens",
  x_CacheWriteTokens: "cacheWriteTokens",
  x_OutputTokens: "outputTokens",
  x_ReasoningTokens: "reasoningTokens",
  x_ExtraNanos: "extraNanos",
  x_UnchargedNanos: "unchargedNanos",
} as const;

test("a FOCUS report is by one period; days where none is named", () => {
  expect(focusGroups(null)).toStartWith("day,");
  for (const period of ["hour", "day", "month"]) expect(focusGroups(`${period}, ${period}`)).toStartWith(`${period},`);
  for (const wrong of ["key", "day,month", "day,key", "week", ""])
    expect(() => focusGroups(wrong)).toThrow("by hour, day, or month");
});
