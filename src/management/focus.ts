/**
 * A report as a FOCUS 1.2 dataset, the form in which finance reads the bills of all providers (docs/reports.md, FOCUS).
 * The organization is the billing account, the team the sub account, the key the resource, the model the SKU. Pure.
 */
import { fail } from "./error.ts";
import { unitPrice } from "./pricing.ts";
import { csvLine } from "./report-csv.ts";
import type { Report, Row } from "./report-shape.ts";

type Cell = string | number | null;

/** The groups that a FOCUS report is by; the period is the caller's, else days. */
export function focusGroups(given: string | null): string {
  const words = [...new Set(given?.split(",").map((word) => word.trim()))];
  const period = words.length === 0 ? "day" : words[0];
  if (words.length > 1 || (period !== "hour" && period !== "day" && period !== "month")) {
    fail(
      "A FOCUS report is by hour, day, or month; the other groups are given: organization, team, key, model, operation.",
    );
  }
  return [period, "organization", "team", "key", "model", "operation"].join(",");
}

type Price = NonNullable<Report["price"]>;

/** The dataset line by line, names first. */
export function reportFocus(report: Report): Iterable<string> {
  const { price } = report;
  if (!price) {
    fail("A FOCUS report needs a price: set reports.currency and reports.price_per_million_units in sluice.yaml.");
  }
  return focusLines(report, price);
}

function* focusLines(report: Report, price: Price): Generator<string> {
  yield csvLine(Object.keys(focusRow({ ...report.total, operation: null }, report, price)));
  for (const row of report.rows) yield csvLine(Object.values(focusRow(row, report, price)));
}

function focusRow(row: Row, { asOf }: Report, { currency, provider, perMillionUnits }: Price): Record<string, Cell> {
  const { keyId = null, key = null, model = null, operation = null, cost = null } = row;
  const startsAt = startOf(row) ?? asOf;
  // A late settlement is usage of a key; an operator's entry is of none.
  const isLate = operation === "adjustment" && keyId !== null;
  const isUsage = operation !== "adjustment" || isLate;
  const usage = isLate ? "late settlement" : operation;
  const price = isUsage ? unitPrice(perMillionUnits) : null;
  const tokens = row.inputTokens + row.cachedInputTokens + row.cacheWriteTokens + row.outputTokens;
  return {
    BilledCost: cost,
    BillingAccountId: row.organizationId ?? null,
    BillingAccountName: row.organizationName ?? null,
    BillingAccountType: "Organization",
    BillingCurrency: currency,
    BillingPeriodEnd: seconds(monthOf(startsAt, 1)),
    BillingPeriodStart: seconds(monthOf(startsAt, 0)),
    ChargeCategory: isUsage ? "Usage" : "Adjustment",
    ChargeClass: null,
    ChargeDescription: isUsage ? `${usage} with ${model}` : "Entry of an operator",
    ChargeFrequency: isUsage ? "Usage-Based" : "One-Time",
    ChargePeriodEnd: seconds(endOf(row, startsAt)),
    ChargePeriodStart: seconds(startsAt),
    ConsumedQuantity: isUsage ? tokens : null,
    ConsumedUnit: isUsage ? "Tokens" : null,
    ContractedCost: cost,
    ContractedUnitPrice: price,
    EffectiveCost: cost,
    InvoiceId: null,
    InvoiceIssuerName: provider,
    ListCost: cost,
    ListUnitPrice: price,
    PricingCategory: isUsage ? "Standard" : null,
    PricingQuantity: isUsage ? row.units : null,
    PricingUnit: isUsage ? "Units" : null,
    ProviderName: provider,
    PublisherName: provider,
    ResourceId: keyId,
    ResourceName: key,
    ResourceType: keyId ? "API key" : null,
    ServiceCategory: "AI and Machine Learning",
    ServiceName: "Model inference",
    ServiceSubcategory: "Generative AI",
    SkuId: isUsage ? model : null,
    SkuMeter: isUsage ? "Tokens" : null,
    SkuPriceDetails: isUsage ? JSON.stringify({ x_Operation: operation }) : null,
    SkuPriceId: isUsage ? model : null,
    SubAccountId: row.teamId ?? null,
    SubAccountName: row.team ?? null,
    SubAccountType: row.teamId ? "Team" : null,
    Tags: JSON.stringify(row.labels ?? {}),
    ...customColumns(row),
  };
}

/** The columns that FOCUS does not have. */
function customColumns(row: Row): Record<string, Cell> {
  return {
    x_Operation: row.operation ?? null,
    x_Requests: row.requests,
    x_InputTokens: row.inputTokens,
    x_CachedInputTokens: row.cachedInputTokens,
    x_CacheWriteTokens: row.cacheWriteTokens,
    x_OutputTokens: row.outputTokens,
    x_ReasoningTokens: row.reasoningTokens,
    x_Units: row.units,
    x_ExtraUnits: row.extraUnits,
    x_UnchargedUnits: row.unchargedUnits,
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
