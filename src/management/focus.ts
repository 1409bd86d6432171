/**
 * A report as a FOCUS 1.2 dataset, the form in which finance reads the bills of all providers (docs/reports.md, FOCUS).
 * The organization is the billing account, the key the resource, the model the SKU. Pure.
 */
import type { ReportGroup, ReportRow } from "../store/report.ts";
import { fail } from "./error.ts";
import { costOf, type Pricing, unitPrice } from "./pricing.ts";
import { csvLine } from "./report-json.ts";
import type { OrganizationReport } from "./reports.ts";

type Cell = string | number | null;

/** The groups that a FOCUS report is by; the period is the caller's, else days. */
export function focusGroups(given: readonly string[] | null): ReportGroup[] {
  const words = [...new Set(given ?? [])];
  const period = words.length === 0 ? "day" : words[0];
  if (words.length > 1 || (period !== "hour" && period !== "day" && period !== "month")) {
    fail(
      "A FOCUS report is by hour, day, or month; the other groups are given: organization, team, key, model, operation.",
    );
  }
  return [period, "organization", "team", "key", "model", "operation"];
}

/** Line by line, names first. */
export function reportFocus(report: OrganizationReport): Iterable<string> {
  const { pricing } = report;
  if (!pricing) {
    fail("A FOCUS report needs a price: set reports.currency and reports.price_per_million_units in sluice.yaml.");
  }
  return focusLines(report, pricing);
}

function* focusLines(report: OrganizationReport, pricing: Pricing): Generator<string> {
  yield csvLine(Object.keys(focusRow(sample, report, pricing)));
  for (const row of report.rows) yield csvLine(Object.values(focusRow(row, report, pricing)));
}

function focusRow(row: ReportRow, { by, at }: OrganizationReport, pricing: Pricing): Record<string, Cell> {
  const { organization, key, model, operation } = row;
  const startsAt = row.startsAt ?? at;
  const isUsage = operation !== "adjustment";
  const cost = costOf(row.units, pricing);
  const price = isUsage ? unitPrice(pricing) : null;
  const tokens = row.inputTokens + row.cachedInputTokens + row.cacheWriteTokens + row.outputTokens;
  return {
    BilledCost: cost,
    BillingAccountId: organization?.id ?? null,
    BillingAccountName: organization?.name ?? null,
    BillingAccountType: "Organization",
    BillingCurrency: pricing.currency,
    BillingPeriodEnd: seconds(monthOf(startsAt, 1)),
    BillingPeriodStart: seconds(monthOf(startsAt, 0)),
    ChargeCategory: isUsage ? "Usage" : "Adjustment",
    ChargeClass: null,
    ChargeDescription: isUsage ? `${operation} with ${model}` : "Entry of an operator",
    ChargeFrequency: isUsage ? "Usage-Based" : "One-Time",
    ChargePeriodEnd: seconds(endOf(startsAt, by)),
    ChargePeriodStart: seconds(startsAt),
    ConsumedQuantity: isUsage ? tokens : null,
    ConsumedUnit: isUsage ? "Tokens" : null,
    ContractedCost: cost,
    ContractedUnitPrice: price,
    EffectiveCost: cost,
    InvoiceIssuerName: pricing.provider,
    ListCost: cost,
    ListUnitPrice: price,
    PricingCategory: isUsage ? "Standard" : null,
    PricingQuantity: isUsage ? row.units : null,
    PricingUnit: isUsage ? "Units" : null,
    ProviderName: pricing.provider,
    PublisherName: pricing.provider,
    ResourceId: key?.id ?? null,
    ResourceName: key?.name ?? null,
    ResourceType: key?.id ? "API key" : null,
    ServiceCategory: "AI and Machine Learning",
    ServiceName: "Model inference",
    ServiceSubcategory: "Generative AI",
    SkuId: isUsage ? model : null,
    SkuPriceId: isUsage ? model : null,
    ...customColumns(row),
  };
}

/** What FOCUS has no column for. */
function customColumns(row: ReportRow): Record<string, Cell> {
  return {
    x_TeamId: row.team?.id ?? null,
    x_TeamName: row.team?.name ?? null,
    x_Operation: row.operation,
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

function endOf(startsAt: Date, by: readonly ReportGroup[]): Date {
  if (by.includes("month")) return monthOf(startsAt, 1);
  return new Date(startsAt.getTime() + (by.includes("hour") ? 3_600_000 : 86_400_000));
}

function monthOf(at: Date, ahead: number): Date {
  return new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + ahead));
}

const seconds = (at: Date): string => `${at.toISOString().slice(0, 19)}Z`;

/** A row for the names of the columns alone. */
const sample: ReportRow = {
  startsAt: null,
  organization: null,
  team: null,
  key: null,
  model: null,
  operation: null,
  outcome: null,
  requests: 0,
  inputTokens: 0,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 0,
  reasoningTokens: 0,
  units: 0,
  extraUnits: 0,
  unchargedUnits: 0,
};
