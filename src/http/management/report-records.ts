/** A usage report as the management interface answers it, and back. Pure. */
import type { Pricing } from "../../management/pricing.ts";
import { reportJson } from "../../management/report-json.ts";
import type { OrganizationReport } from "../../management/reports.ts";
import type { ReportMeasures, ReportRow } from "../../store/report.ts";

/** What `--json` prints, and what else a table, CSV and FOCUS need: names of organizations, and who bills. */
export function reportAnswer(report: OrganizationReport) {
  const { rows, price, ...shown } = reportJson(report);
  const { organization, pricing, by } = report;
  return {
    ...shown,
    organization_id: organization?.id ?? null,
    price: price && { ...price, provider: pricing!.provider },
    rows: rows.map((row, index) => ({
      ...(by.includes("organization") ? { organization_name: report.rows[index]!.organization?.name ?? null } : {}),
      ...row,
    })),
  };
}

type ReadRow = ReportMeasures &
  Partial<Record<"organizationId" | "day" | "month", string>> &
  Partial<
    Record<
      "organization" | "organizationName" | "teamId" | "team" | "keyId" | "key" | "model" | "operation" | "outcome",
      string | null
    >
  > & { hour?: Date; cost?: string };

export interface ReadReport extends Pick<OrganizationReport, "from" | "to" | "by" | "running"> {
  organizationId: string | null;
  organization: string | null;
  asOf: Date;
  price: { currency: string; perMillionUnits: number; provider: string } | null;
  rows: ReadRow[];
  total: ReportMeasures & { cost?: string };
}

export function readReport(read: ReadReport): OrganizationReport {
  const { from, to, by, organizationId, organization, asOf, price, rows, total, running } = read;
  const pricing: Pricing | null = price && {
    currency: price.currency,
    price_per_million_units: price.perMillionUnits,
    provider: price.provider,
  };
  const { cost: _, ...measures } = total;
  return {
    ...{ from, to, by, running, pricing },
    organization: organizationId === null ? null : { id: organizationId, slug: organization ?? "" },
    at: asOf,
    rows: rows.map(rowOf),
    total: measures,
  };
}

function rowOf(read: ReadRow): ReportRow {
  const { organizationId, organization = null, organizationName = null, ...grouped } = read;
  const { teamId, team = null, keyId, key = null, ...rest } = grouped;
  const { hour, day, month, model = null, operation = null, outcome = null, cost: _, ...measures } = rest;
  const startsAt = hour ?? (day ? new Date(day) : month ? new Date(`${month}-01`) : null);
  return {
    ...measures,
    ...{ startsAt, model, operation, outcome },
    organization: organizationId ? { id: organizationId, slug: organization, name: organizationName } : null,
    team: teamId === undefined ? null : { id: teamId, name: team },
    key: keyId === undefined ? null : { id: keyId, name: key },
  };
}
