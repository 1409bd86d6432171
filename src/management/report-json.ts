/** A report as JSON and as CSV: stable formats for scripts and spreadsheets (docs/reports.md). Pure. */
import type { ReportGroup, ReportMeasures, ReportRow } from "../store/report.ts";
import { costOf, type Pricing } from "./pricing.ts";
import type { OrganizationReport } from "./reports.ts";

export function reportJson(report: OrganizationReport) {
  const { from, to, by, organization, at, rows, total, running, pricing } = report;
  return {
    ...{ from, to, by },
    organization: organization?.slug ?? null,
    as_of: at,
    price: pricing && { currency: pricing.currency, per_million_units: pricing.price_per_million_units },
    rows: rows.map((row) => ({
      ...Object.fromEntries(by.flatMap((group) => cellsOf(group, row))),
      ...measuresOf(row, pricing),
    })),
    total: measuresOf(total, pricing),
    running: { requests: running.requests, held_units: running.heldUnits },
  };
}

/** Line by line, names first, with line ends as RFC 4180 wants them. */
export function* reportCsv({ by, rows, pricing }: OrganizationReport): Generator<string> {
  yield csvLine([...by.flatMap((group) => cellNames[group]), ...Object.keys(measuresOf(nothing, pricing))]);
  for (const row of rows) {
    const groups = by.flatMap((group) => cellsOf(group, row).map(([, value]) => value));
    yield csvLine([...groups, ...Object.values(measuresOf(row, pricing))]);
  }
}

type Cell = string | number | Date | null;

export function csvLine(cells: readonly Cell[]): string {
  return `${cells.map(csvCell).join(",")}\r\n`;
}

/**
 * People choose names: what begins like a formula gets a quote before it, so that no spreadsheet computes it. In countries
 * where lists are parted by semicolons, spreadsheets part cells there too, and quotes around the whole do not keep them from
 * it: a cell begins behind each semicolon, tab and line end of a name.
 */
function csvCell(value: Cell): string {
  if (value === null) return "";
  if (value instanceof Date) return value.toISOString();
  if (typeof value === "number") return String(value);
  if (/^-?\d+(\.\d+)?$/.test(value)) return value;
  const text = value.replace(/^[\t\r\n]/, "'$&").replace(beginnings, "$&'");
  return /[",;\t\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Where a formula would begin. Letters of full width are formulas' too, in East Asia. */
const beginnings = /(?:^|[;\t\r\n])\s*(?=[=+\-@＝＋－＠])/g;

const cellNames: Record<ReportGroup, readonly string[]> = {
  organization: ["organization_id", "organization"],
  team: ["team_id", "team"],
  key: ["key_id", "key"],
  model: ["model"],
  operation: ["operation"],
  outcome: ["outcome"],
  hour: ["hour"],
  day: ["day"],
  month: ["month"],
};

function cellsOf(group: ReportGroup, row: ReportRow): [string, Cell][] {
  const values: Record<ReportGroup, Cell[]> = {
    organization: [row.organization?.id ?? null, row.organization?.slug ?? null],
    team: [row.team?.id ?? null, row.team?.name ?? null],
    key: [row.key?.id ?? null, row.key?.name ?? null],
    model: [row.model],
    operation: [row.operation],
    outcome: [row.outcome],
    hour: [row.startsAt],
    day: [row.startsAt?.toISOString().slice(0, 10) ?? null],
    month: [row.startsAt?.toISOString().slice(0, 7) ?? null],
  };
  return cellNames[group].map((name, index) => [name, values[group][index] ?? null]);
}

function measuresOf(row: ReportMeasures, pricing: Pricing | null): Record<string, string | number> {
  return {
    requests: row.requests,
    input_tokens: row.inputTokens,
    cached_input_tokens: row.cachedInputTokens,
    cache_write_tokens: row.cacheWriteTokens,
    output_tokens: row.outputTokens,
    reasoning_tokens: row.reasoningTokens,
    units: row.units,
    extra_units: row.extraUnits,
    uncharged_units: row.unchargedUnits,
    ...(pricing && { cost: costOf(row.units, pricing) }),
  };
}

const nothing: ReportMeasures = {
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
