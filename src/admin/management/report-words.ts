/** A report of usage in words. */
import { grouped, inWords, nanosOf } from "../../core/inference/money.ts";
import { instant, instantIn, minute } from "../../core/time/written.ts";
import type { ReportGroup } from "../store/report.ts";
import { barColumn, type Column, type Said, tablePiece } from "./command.ts";
import { labelsInWords } from "./key-words.ts";
import type { Report, Row } from "./report-shape.ts";
import { shareInWords, tightestReset } from "./standing.ts";

export function reportSaid(report: Report): Said {
  const { from, to, asOf, rows, total, running, organization, zone } = report;
  const whose = organization ? `, of ${organization}` : "";
  const at = (one: Date) => (zone === null ? instant(one) : instantIn(one, zone));
  const head = `From ${at(from)} until before ${at(to)}${whose}, as of ${at(asOf)}.\n`;
  const all = rows.length === 0 ? "" : `In all: ${counted(total.requests)}, ${inWords(total.cost.total)}.\n`;
  const isOpen = running.requests > 0;
  const open = `Still running, and not counted yet: ${counted(running.requests)}, which hold ${inWords(running.held)}.\n`;
  const last = `${all}${isOpen ? open : ""}`;
  if (rows.length === 0) return `${head}Nothing was used.\n${last}`;
  return { pieces: [head, tablePiece(columnsOf(report), rows), last] };
}

const counted = (requests: number): string => (requests === 1 ? "1 request" : `${grouped(requests)} requests`);

const groupColumns: Record<ReportGroup, Column<Row>> = {
  organization: {
    head: "ORGANIZATION",
    cell: ({ organization, organizationId }) => organization ?? organizationId ?? "",
  },
  team: { head: "TEAM", cell: ({ team, teamId }) => team ?? teamId ?? "-", breaks: true },
  person: { head: "PERSON", cell: ({ person, personId }) => person ?? personId ?? "-", breaks: true },
  key: { head: "KEY", cell: ({ key, keyId }) => key ?? keyId ?? "-", breaks: true },
  model: { head: "MODEL", cell: ({ model }) => model || "-" },
  operation: { head: "OPERATION", cell: ({ operation }) => operation ?? "" },
  outcome: { head: "OUTCOME", cell: ({ outcome }) => outcome ?? "" },
  hour: { head: "HOUR (UTC)", cell: ({ hour }) => minute(hour ?? null) ?? "" },
  day: { head: "DAY", cell: ({ day }) => day ?? "" },
  month: { head: "MONTH", cell: ({ month }) => month ?? "" },
};

function inZone(group: ReportGroup, zone: string): Column<Row> {
  const column = groupColumns[group];
  return group === "day" || group === "month" ? { ...column, head: `${column.head} (${zone})` } : column;
}

function columnsOf({ by, rows, zone }: Report): Column<Row>[] {
  const chargedTo = ({ cost }: Row) => Math.max(0, Number(nanosOf(cost.total)));
  const most = rows.reduce((largest, row) => Math.max(largest, chargedTo(row)), 1);
  const input = (row: Row) => row.inputTokens + row.cachedInputTokens + row.cacheWriteTokens;
  return [
    ...by.map((group) => inZone(group, zone ?? "UTC")),
    ...(by.includes("team") ? [teamId] : []),
    ...(by.includes("person") ? [personId] : []),
    ...(by.includes("key") ? [keyId, labels] : []),
    barColumn([8, 20], (row) => ({ used: chargedTo(row), held: 0, limit: most })),
    { head: "COST", cell: ({ cost }) => inWords(cost.total) },
    { head: "REQUESTS", cell: ({ requests }) => grouped(requests) },
    { head: "INPUT", cell: (row) => grouped(input(row)), optional: true },
    { head: "OUTPUT", cell: ({ outputTokens }) => grouped(outputTokens), optional: true },
    ...(rows[0]?.standing === undefined ? [] : standing),
  ];
}

/** The columns for the tightest limit. They show its current state, whatever span the report has. */
const standing: Column<Row>[] = [
  { head: "OF LIMIT", cell: ({ standing = null }) => shareInWords(standing), optional: true },
  { head: "RESETS (UTC)", cell: ({ standing = null }) => minute(tightestReset(standing)) ?? "-", optional: true },
];

const teamId: Column<Row> = { head: "TEAM ID", cell: ({ teamId }) => teamId ?? "-", optional: true };
const labels: Column<Row> = {
  head: "LABELS",
  cell: ({ labels }) => labelsInWords(labels ?? {}) ?? "-",
  breaks: true,
  optional: true,
};
const personId: Column<Row> = { head: "PERSON ID", cell: ({ personId }) => personId ?? "-", optional: true };
const keyId: Column<Row> = { head: "KEY ID", cell: ({ keyId }) => keyId ?? "-", optional: true };

export const reportHelp = `
Groups: organization, team, person, key, model, operation, outcome, and one of
hour, day, month. Requests count in the hour of their admission, in the team
that their key was in then, and for the person whose key it is. Dates are days
of UTC or of --zone, and months can be given as 2026-11; an instant must be the
beginning of an hour. The end is not part of the report. A zone whose days do
not begin at a full hour in UTC is refused, since usage is added up by hours.

FOCUS is by day, or --by hour or month, with organization, team, person, key,
model, and operation.

Examples:
  $ sluice usage report
  $ sluice usage report --from 2026-11 --to 2026-12 --by key,model --org acme
  $ sluice usage report --by day --zone Europe/Berlin
  $ sluice usage report --by team,day --csv >november.csv
  $ sluice usage report --from 2026-10 --to 2026-11 --focus >october.csv`;
