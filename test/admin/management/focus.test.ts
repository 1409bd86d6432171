/**
 * The report in the FOCUS format: each charge is within its charge period, and each charge period within its calendar
 * month.
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { focusGroups, reportFocus } from "../../../src/admin/management/focus.ts";
import type { Report, Row } from "../../../src/admin/management/report-shape.ts";
import { dollars } from "../../harness/money.ts";

const row: Row = {
  ...{ organizationId: "org_1", organization: "acme", organizationName: "Acme", keyId: "key_1", key: "app" },
  ...{ model: "acme/writer-1", operation: "chat.completions", requests: 2 },
  ...{ inputTokens: 100, cachedInputTokens: 20, cacheWriteTokens: 3, outputTokens: 40, reasoningTokens: 10 },
  cost: costOf({ total: 2_500_000, input: 1_000_000, cachedInput: 500_000, output: 1_000_000 }),
};

function costOf(given: Partial<Record<keyof Row["cost"], number>>): Row["cost"] {
  const { total = 0, extraUsage = 0, uncharged = 0, input = 0, cachedInput = 0, cacheWrite = 0, output = 0 } = given;
  const nanos = { total, extraUsage, uncharged, input, cachedInput, cacheWrite, output };
  return Object.fromEntries(Object.entries(nanos).map(([name, of]) => [name, dollars(of)])) as Row["cost"];
}

/** The cells in the columns with these names, for each line. */
const cellsOf = (lines: ReturnType<typeof read>, ...names: string[]) =>
  lines.map((line) => names.map((name) => line[name]));

/** The rows after parsing the CSV text. No cell in these tests contains a comma. */
function read(rows: Partial<Row>[]) {
  const report = {
    asOf: new Date("2026-11-23T10:00:00Z"),
    rows: rows.map((one) => ({ ...row, ...one })),
    total: row,
    zone: null,
    currency: "USD",
    provider: "Acme Inference",
  };
  const [names = [], ...lines] = [...reportFocus(report as unknown as Report)].map((line) => line.trimEnd().split(","));
  return lines.map((cells) => Object.fromEntries(names.map((name, at) => [name, cells[at]])));
}

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
    expect(Object.keys(lines[0]!)).toEqual(expect.arrayContaining([...mandatory]));
    expect(lines[0]).toMatchObject({
      BilledCost: "0.001000000",
      BillingCurrency: "USD",
      ChargeCategory: "Usage",
      ChargeDescription: "Input Tokens: chat.completions with acme/writer-1",
      ConsumedQuantity: "100",
      ListUnitPrice: "10.000000",
      PricingQuantity: "0.000100",
      PricingUnit: "1000000 Tokens",
      ResourceId: "key_1",
      SkuId: "acme/writer-1",
      x_InputTokens: "100",
      x_OutputTokens: "0",
      x_Requests: "2",
    });
    const names = ["SkuMeter", "BilledCost", "ConsumedQuantity", "PricingQuantity", "ListUnitPrice", "x_Requests"];
    expect(cellsOf(lines, ...names)).toEqual([
      ["Input Tokens", "0.001000000", "100", "0.000100", "10.000000", "2"],
      ["Cached Input Tokens", "0.000500000", "20", "0.000020", "25.000000", "0"],
      ["Cache Write Tokens", "0.000000000", "3", "0.000003", "0.000000", "0"],
      ["Output Tokens", "0.001000000", "40", "0.000040", "25.000000", "0"],
    ]);
    expect(lines[3]).toMatchObject({ x_OutputTokens: "40", x_ReasoningTokens: "10" });
    expect(new Set(lines.map(({ SkuPriceId }) => SkuPriceId)).size).toBe(4);
  });

  test("whose kinds nobody knows is one line with all tokens; a part of it that is of no kind is a line of its own", () => {
    const [whole, ...others] = read([{ cost: costOf({ total: 2_500_000 }) }]);
    expect(whole).toMatchObject({
      SkuMeter: "Tokens",
      BilledCost: "0.002500000",
      ConsumedQuantity: "163",
      ListUnitPrice: "",
      x_OutputTokens: "40",
    });
    expect(others).toEqual([]);
    const rest = costOf({ total: 2_500_000, input: 1_000_000, cachedInput: 500_000, output: 900_000 });
    expect(read([{ cost: rest }]).at(-1)).toMatchObject({
      ...{ SkuMeter: "Tokens", BilledCost: "0.000100000", ConsumedQuantity: "0", PricingQuantity: "0.000000" },
      ...{ ListUnitPrice: "", x_Requests: "0" },
    });
    const failed = { cost: costOf({}), inputTokens: 0, cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens: 0 };
    expect(read([failed])).toMatchObject([{ SkuMeter: "Tokens", BilledCost: "0.000000000", x_Requests: "2" }]);
  });

  test("has a price only where the price times the quantity is the cost, and all was charged", () => {
    const priceOf = (inputTokens: number, cost: Row["cost"]) => read([{ inputTokens, cost }])[0]!.ListUnitPrice;
    expect(priceOf(812, costOf({ total: 121_800, input: 121_800 }))).toBe("0.150000");
    expect(priceOf(0, costOf({ total: 5 }))).toBe("");
    // With two prices, or a cost that was rounded up to a billionth, no unit price times the quantity gives the cost.
    expect(priceOf(7, costOf({ total: 1_000, input: 1_000 }))).toBe("");
    expect(priceOf(812, costOf({ total: 121_800, input: 121_800, uncharged: 1 }))).toBe("");
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1e9 }), fc.integer({ min: 0, max: 1e12 }), (tokens, price) => {
        const nanos = Number((BigInt(tokens) * BigInt(price) + 999n) / 1000n);
        const [line] = read([{ inputTokens: tokens, cost: costOf({ total: nanos, input: nanos }) }]);
        if (line!.ListUnitPrice === "") return;
        const whole = (text: string) => BigInt(text.replace(".", ""));
        expect(whole(line!.ListUnitPrice!) * whole(line!.PricingQuantity!)).toBe(whole(line!.ListCost!) * 1000n);
      }),
    );
  });

  test("adds up over its lines to what it has, whatever that is", () => {
    const amount = fc.oneof(fc.constant(0), fc.nat(1_000_000));
    const costs = ["extraUsage", "uncharged", "input", "cachedInput", "cacheWrite", "output"] as const;
    const measures = [...Object.values(measureColumns), ...costs];
    const measured = fc
      .tuple(...measures.map(() => amount))
      .map((all) => Object.fromEntries(measures.map((name, at) => [name, all[at]!])))
      .map((one) => one as Record<(typeof measures)[number], number>);
    fc.assert(
      fc.property(measured, fc.oneof(fc.constant(0), fc.integer({ min: -1000, max: 1000 })), (one, unsplit) => {
        const total = one.input + one.cachedInput + one.cacheWrite + one.output + unsplit;
        const lines = read([{ ...one, cost: costOf({ ...one, total }) }]);
        const sum = (name: string) => lines.reduce((total, line) => total + Number(line[name]), 0);
        const inNanos = (name: string) =>
          lines.reduce((total, line) => total + Number(line[name]!.replace(".", "")), 0);
        const tokens = one.inputTokens + one.cachedInputTokens + one.cacheWriteTokens + one.outputTokens;
        expect({
          ConsumedQuantity: sum("ConsumedQuantity"),
          PricingQuantity: inNanos("PricingQuantity"),
          cost: inNanos("BilledCost"),
          x_ExtraUsageCost: inNanos("x_ExtraUsageCost"),
          x_UnchargedCost: inNanos("x_UnchargedCost"),
        }).toEqual({
          ConsumedQuantity: tokens,
          PricingQuantity: tokens,
          cost: total,
          x_ExtraUsageCost: one.extraUsage,
          x_UnchargedCost: one.uncharged,
        });
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
    ].map((one) => ({ day: "2026-11-23", ...one, cost: costOf({ total: 2_500_000 }) }));
    expect(cellsOf(read(rows), "ResourceName", "SkuId", "x_Operation", "ChargePeriodStart")).toEqual([
      ["one", "acme/writer-1", "chat.completions", "2026-11-23T00:00:00Z"],
      ["two", "acme/writer-1", "chat.completions", "2026-11-23T00:00:00Z"],
      ["one", "acme/painter-1", "chat.completions", "2026-11-23T00:00:00Z"],
      ["one", "acme/writer-1", "messages", "2026-11-23T00:00:00Z"],
      ["one", "acme/writer-1", "chat.completions", "2026-11-24T00:00:00Z"],
      ["one", "acme/writer-1", "chat.completions", "2026-11-23T00:00:00Z"],
    ]);
  });

  test("of an operator's entry has a cost, and nothing that was consumed", () => {
    const entry = {
      ...{ day: "2026-11-23", operation: "adjustment", model: null, cost: costOf({ total: -1_000_000 }), requests: 0 },
      keyId: null,
      ...{ inputTokens: 0, cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens: 0, reasoningTokens: 0 },
    };
    const lines = read([entry]);
    const said = { BilledCost: "-0.001000000", ChargeCategory: "Adjustment", ChargeFrequency: "One-Time" };
    expect(lines).toMatchObject([said]);
    const consumed = ["ConsumedQuantity", "ContractedUnitPrice", "ListUnitPrice", "PricingQuantity", "PricingUnit"];
    const names = [...consumed, "SkuId", "SkuMeter", "SkuPriceId"];
    expect(cellsOf(lines, ...names)).toEqual([names.map(() => "")]);
  });

  test("of a late settlement is usage of its key", () => {
    const late = {
      ...{ day: "2026-11-23", operation: "adjustment", model: "acme/writer-1", keyId: "key_1", requests: 0 },
      ...{ inputTokens: 0, cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens: 33, reasoningTokens: 0 },
      cost: costOf({ total: 330, output: 330 }),
    };
    const usage = { ChargeCategory: "Usage", ConsumedQuantity: "33", PricingQuantity: "0.000033" };
    expect(read([late])).toMatchObject([{ ...usage, ResourceId: "key_1", x_Requests: "0" }]);
  });
});

const measureColumns = {
  x_Requests: "requests",
  x_InputTokens: "inputTokens",
  x_CachedInputTokens: "cachedInputTokens",
  x_CacheWriteTokens: "cacheWriteTokens",
  x_OutputTokens: "outputTokens",
  x_ReasoningTokens: "reasoningTokens",
} as const;

test("a FOCUS report is by one period; days where none is named", () => {
  expect(focusGroups(null)).toStartWith("day,");
  for (const period of ["hour", "day", "month"]) expect(focusGroups(`${period}, ${period}`)).toStartWith(`${period},`);
  for (const wrong of ["key", "day,month", "day,key", "week", ""])
    expect(() => focusGroups(wrong)).toThrow("by hour, day, or month");
});

/** The columns that FOCUS 1.2 declares mandatory. */
const mandatory = [
  ...["BilledCost", "BillingAccountId", "BillingAccountName", "BillingCurrency", "BillingPeriodEnd"],
  ...["BillingPeriodStart", "ChargeCategory", "ChargeClass", "ChargeDescription", "ChargePeriodEnd"],
  ...["ChargePeriodStart", "ContractedCost", "EffectiveCost", "InvoiceIssuerName", "ListCost"],
  ...["PricingQuantity", "PricingUnit", "ProviderName", "PublisherName", "ServiceCategory", "ServiceName"],
] as const;
