/**
 * A report as a FOCUS 1.2 dataset, the common format for the bills of all cloud providers (docs/reports.md, FOCUS). The
 * organization is the billing account, the team the sub account, the key the resource, the model the SKU. Each kind of
 * token has a separate line. Pure.
 */

import { decimalOf, nano_decimals, price_decimals } from "../../core/inference/money.ts";
import type { Billing } from "./context.ts";
import { fail } from "./error.ts";
import { type Charge, chargesOf } from "./focus-charges.ts";
import { type Cell, csvCells, csvLine } from "./report-csv.ts";
import type { Report, Row } from "./report-shape.ts";

/** The groups of a FOCUS report: the given period (by default, days), and all groups that are not periods. */
export function focusGroups(given: string | null): string {
  const words = [...new Set(given?.split(",").map((word) => word.trim()))];
  const period = words.length === 0 ? "day" : words[0];
  if (words.length > 1 || (period !== "hour" && period !== "day" && period !== "month")) {
    fail(
      "A FOCUS report is by hour, day, or month; the other groups are given: organization, team, person, key, model, operation.",
    );
  }
  return [period, "organization", "team", "person", "key", "model", "operation"].join(",");
}

/** The dataset as CSV lines; the first line has the names of the columns. */
export function reportFocus(report: Report): Iterable<string> {
  if (report.zone !== null) fail("A FOCUS report is in UTC, as the standard has it. Leave out the zone.");
  return focusLines(report);
}

interface ThingFacts {
  row: Row;
  isUsage: boolean;
  billing: Billing;
}

type Columns<Facts> = Record<string, (facts: Facts) => Cell>;

/** Columns that depend on the key, the model and the operation of a row. */
const ofThing: Columns<ThingFacts> = {
  BillingAccountId: ({ row }) => row.organizationId ?? null,
  BillingAccountName: ({ row }) => row.organizationName ?? null,
  BillingAccountType: () => "Organization",
  BillingCurrency: ({ billing }) => billing.currency,
  ChargeCategory: ({ isUsage }) => (isUsage ? "Usage" : "Adjustment"),
  ChargeClass: () => null,
  ChargeFrequency: ({ isUsage }) => (isUsage ? "Usage-Based" : "One-Time"),
  ConsumedUnit: ({ isUsage }) => (isUsage ? "Tokens" : null),
  ContractedUnitPrice: () => null,
  InvoiceId: () => null,
  InvoiceIssuerName: ({ billing }) => billing.provider,
  PricingCategory: ({ isUsage }) => (isUsage ? "Standard" : null),
  PricingUnit: ({ isUsage }) => (isUsage ? "1000000 Tokens" : null),
  ProviderName: ({ billing }) => billing.provider,
  PublisherName: ({ billing }) => billing.provider,
  ResourceId: ({ row }) => row.keyId ?? null,
  ResourceName: ({ row }) => row.key ?? null,
  ResourceType: ({ row }) => (row.keyId ? "API key" : null),
  ServiceCategory: () => "AI and Machine Learning",
  ServiceName: () => "Model inference",
  ServiceSubcategory: () => "Generative AI",
  SkuId: ({ isUsage, row }) => (isUsage ? (row.model ?? null) : null),
  SkuPriceDetails: ({ isUsage, row }) => (isUsage ? JSON.stringify({ x_Operation: row.operation }) : null),
  SubAccountId: ({ row }) => row.teamId ?? null,
  SubAccountName: ({ row }) => row.team ?? null,
  SubAccountType: ({ row }) => (row.teamId ? "Team" : null),
  Tags: ({ row }) => JSON.stringify(row.labels ?? {}),
  x_Operation: ({ row }) => row.operation ?? null,
  x_PersonId: ({ row }) => row.personId ?? null,
  x_PersonName: ({ row }) => row.person ?? null,
};

const ofPeriod: Columns<Period> = {
  BillingPeriodEnd: (period) => period.billingEnd,
  BillingPeriodStart: (period) => period.billingStart,
  ChargePeriodEnd: (period) => period.end,
  ChargePeriodStart: (period) => period.start,
};

/**
 * Columns of each charge, in the order in which `chargeText` writes them. Columns whose names begin with x_ are not
 * part of FOCUS.
 */
const ofCharge = [
  ...["BilledCost", "ContractedCost", "EffectiveCost", "ListCost", "ChargeDescription", "SkuMeter", "SkuPriceId"],
  ...["ConsumedQuantity", "PricingQuantity", "ListUnitPrice", "x_Requests"],
  ...["x_InputTokens", "x_CachedInputTokens", "x_CacheWriteTokens", "x_OutputTokens", "x_ReasoningTokens"],
  ...["x_ExtraUsageCost", "x_UnchargedCost"],
];

const noCost = decimalOf(0, nano_decimals);

/** The cells of a charge as one text, for speed: a report can have several hundred thousand charges. */
function chargeText(facts: ThingFacts, charge: Charge, written: (value: Cell) => string): string {
  const { requests = 0, inputTokens = 0, cachedInputTokens = 0, cacheWriteTokens = 0 } = charge.measures;
  const { outputTokens = 0, reasoningTokens = 0, extraUsage = noCost, uncharged = noCost } = charge.measures;
  const sums = `${requests},${inputTokens},${cachedInputTokens},${cacheWriteTokens},${outputTokens},${reasoningTokens},${extraUsage},${uncharged}`;
  const cost = decimalOf(charge.nanos, nano_decimals);
  const costs = `${cost},${cost},${cost},${cost}`;
  if (!facts.isUsage) return `${costs},Entry of an operator,,,,,,${sums}`;
  const { meter, tokens, price } = charge;
  const quantity = decimalOf(tokens, price_decimals);
  const unitPrice = price === null ? "" : decimalOf(price, price_decimals);
  const { model, operation } = facts.row;
  const description = written(`${meter}: ${operation} with ${model}`);
  return `${costs},${description},${meter},${written(`${model}: ${operation}: ${meter}`)},${tokens},${quantity},${unitPrice},${sums}`;
}

function* focusLines({ rows, asOf, currency, provider }: Report): Generator<string> {
  yield csvLine([...ofCharge, ...Object.keys(ofPeriod), ...Object.keys(ofThing)]);
  const billing = { currency, provider };
  const written = csvCells();
  const things = writtenOnce(ofThing, written);
  const periods = writtenOnce(ofPeriod, written);
  for (const row of rows) {
    const isUsage = isUsageOf(row);
    const facts = { row, isUsage, billing };
    const thing = things(nameOf(row), () => facts);
    const period = periods(row.day ?? row.month ?? row.hour?.toISOString() ?? "", () => periodOf(row, asOf));
    for (const charge of chargesOf(row)) {
      yield `${chargeText(facts, charge, written)},${period},${thing}\r\n`;
    }
  }
}

/**
 * Whether the row is usage. Both late settlements and operators' entries have the operation `adjustment`: the first
 * belong to a key and are usage, the others belong to no key and are not.
 */
function isUsageOf({ operation, keyId = null }: Row): boolean {
  return operation !== "adjustment" || keyId !== null;
}

/**
 * The cache key of a row: its organization, team, key, model and operation. Rows with the same cache key have the same
 * cells in the columns of `ofThing`.
 */
function nameOf({ organizationId, teamId, keyId, model, operation }: Row): string {
  return `${organizationId} ${teamId} ${keyId} ${model} ${operation}`;
}

const kept_max = 10_000;

/** Writes cells, and caches the text by a name: all lines with the same name have the same text in these columns. */
function writtenOnce<Facts>(columns: Columns<Facts>, written: (value: Cell) => string) {
  const cells = Object.values(columns);
  const kept = new Map<string, string>();
  return (name: string, facts: () => Facts): string => {
    const known = kept.get(name);
    if (known !== undefined) return known;
    const given = facts();
    const text = cells.map((cell) => written(cell(given))).join();
    if (kept.size < kept_max) kept.set(name, text);
    return text;
  };
}

/** The period of a charge, and the month in which it is billed, in the terms of FOCUS. */
interface Period {
  start: string;
  end: string;
  billingStart: string;
  billingEnd: string;
}

function periodOf(row: Row, asOf: Date): Period {
  const startsAt = startOf(row) ?? asOf;
  return {
    start: seconds(startsAt),
    end: seconds(endOf(row, startsAt)),
    billingStart: seconds(monthOf(startsAt, 0)),
    billingEnd: seconds(monthOf(startsAt, 1)),
  };
}

function startOf({ hour, day, month }: Row): Date | null {
  if (hour) return hour;
  const first = day ?? (month && `${month}-01`);
  return first ? new Date(first) : null;
}

function endOf({ hour, month }: Row, startsAt: Date): Date {
  if (month) return monthOf(startsAt, 1);
  return new Date(startsAt.getTime() + (hour ? 3_600_000 : 86_400_000));
}

function monthOf(at: Date, ahead: number): Date {
  return new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + ahead));
}

const seconds = (at: Date): string => `${at.toISOString().slice(0, 19)}Z`;
