/** A report as CSV: a stable format for spreadsheets (docs/reports.md). Pure. */
import { snakeName } from "../../core/schema/codec.ts";
import { type ReportGroup, reportCounts } from "../store/report.ts";
import type { Report, Row } from "./report-shape.ts";

/** The report as CSV lines, column names first, with the line ends of RFC 4180. */
export function* reportCsv({ by, rows, currency }: Report): Generator<string> {
  const names = [...by.flatMap((group) => cellNames[group]), ...reportCounts];
  const isByKey = by.includes("key");
  const heads = [...names.map(snakeName), ...costs.map((name) => costHeads[name]), "currency"];
  yield csvLine([...heads, ...(isByKey ? ["labels"] : [])]);
  const written = csvCells();
  for (const row of rows) {
    const cells = names.map((name) => row[name] ?? null) as Cell[];
    for (const name of costs) cells.push(row.cost[name].amount);
    cells.push(currency);
    if (isByKey) cells.push(JSON.stringify(row.labels ?? {}));
    yield `${cells.map(written).join(",")}\r\n`;
  }
}

const costHeads: Record<keyof Row["cost"], string> = {
  total: "cost",
  extraUsage: "cost_extra_usage",
  uncharged: "cost_uncharged",
  input: "cost_input",
  cachedInput: "cost_cached_input",
  cacheWrite: "cost_cache_write",
  output: "cost_output",
};
const costs = Object.keys(costHeads) as (keyof Row["cost"])[];

const cellNames: Record<ReportGroup, readonly (keyof Row)[]> = {
  organization: ["organizationId", "organization"],
  team: ["teamId", "team"],
  person: ["personId", "person"],
  key: ["keyId", "key"],
  model: ["model"],
  operation: ["operation"],
  outcome: ["outcome"],
  hour: ["hour"],
  day: ["day"],
  month: ["month"],
};

export type Cell = string | number | Date | null;

export function csvLine(cells: readonly Cell[]): string {
  return `${cells.map(csvCell).join(",")}\r\n`;
}

const texts_max = 10_000;

/** Writes the cells of one file. A text that occurs several times is escaped only once. */
export function csvCells(): (value: Cell) => string {
  const texts = new Map<string, string>();
  return (value) => {
    if (typeof value !== "string" || isNumber.test(value)) return csvCell(value);
    const written = texts.get(value);
    if (written !== undefined) return written;
    const cell = csvCell(value);
    if (texts.size < texts_max) texts.set(value, cell);
    return cell;
  };
}

/**
 * A name that somebody chose may begin like a formula. It gets a quote before it, so that no spreadsheet computes it.
 * In some countries spreadsheets split cells at semicolons, even within quotes. So a cell may begin after each
 * semicolon, tab and line end in a name, and a formula there gets the quote, too.
 */
function csvCell(value: Cell): string {
  if (value === null) return "";
  if (value instanceof Date) return value.toISOString();
  if (typeof value === "number") return String(value);
  if (isNumber.test(value)) return value;
  const text = value.replace(/^[\t\r\n]/, "'$&").replace(beginnings, "$&'");
  return /[",;\t\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const isNumber = /^-?\d+(\.\d+)?$/;

/** The positions in a name where a formula would begin. East Asian spreadsheets also accept full-width operators. */
const beginnings = /(?:^|[;\t\r\n])\s*(?=[=+\-@＝＋－＠])/g;
