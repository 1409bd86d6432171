/** `sluice usage report`: what was used over time, as a table, CSV, JSON or FOCUS. */
import { type Command, Option } from "commander";
import { grouped } from "../../core/inference/amounts.ts";
import { encode } from "../../core/schema/codec.ts";
import type { ReportGroup } from "../../core/store/report.ts";
import { instant, minute } from "../../core/time/written.ts";
import type { Column } from "../management/command.ts";
import { focusGroups, reportFocus } from "../management/focus.ts";
import { reportCsv } from "../management/report-csv.ts";
import { Report, type Row } from "../management/report-shape.ts";
import { shareInWords, tightestReset } from "../management/standing.ts";
import { bar } from "./bar.ts";
import { withManagement } from "./connect.ts";
import type { CommandContext } from "./context.ts";
import { labelsInWords } from "./key-facts.ts";
import { type JsonFlag, jsonOption, names, printJson } from "./option.ts";
import { table } from "./table.ts";
import type { Terminal } from "./terminal.ts";

interface ReportOptions extends JsonFlag {
  from?: string;
  to?: string;
  by?: string[];
  org?: string;
  csv?: true;
  focus?: true;
}

export function addReport(usage: Command, { services }: CommandContext): void {
  usage
    .command("report")
    .description("add up what was used in a span of time, by any groups")
    .option("--from <date>", "first moment (default: the first of this month)")
    .option("--to <date>", "moment after the last (default: now)")
    .option("--by <groups>", "groups, comma-separated (default: organization)", names)
    .option("--org <org>", "slug or ID of the organization (default: all)")
    .addOption(jsonOption().conflicts(["csv", "focus"]))
    .addOption(new Option("--csv", "print CSV").conflicts("focus"))
    .addOption(new Option("--focus", "print CSV in the form of FOCUS 1.2, with costs"))
    .addHelpText("after", reportHelp)
    .action(async (options: ReportOptions) => {
      const { terminal } = services;
      const { from, to, org: organization } = options;
      const groups = options.by?.join(",");
      const by = options.focus ? focusGroups(groups ?? null) : groups;
      const query = { from, to, by, organization };
      const report = await withManagement(services, (manage) => manage.reportUsage(query));
      if (options.json) printJson(terminal, encode(Report, report));
      else if (options.csv) terminal.out([...reportCsv(report)].join(""));
      else if (options.focus) terminal.out([...reportFocus(report)].join(""));
      else terminal.out(described(terminal, report));
    });
}

function described(terminal: Terminal, report: Report): string {
  const { from, to, asOf, rows, total, running, price, organization } = report;
  const whose = organization ? `, of ${organization}` : "";
  const head = `From ${instant(from)} until before ${instant(to)}${whose}, as of ${instant(asOf)}.\n`;
  const lines = rows.length === 0 ? "Nothing was used.\n" : `\n${table(terminal, columnsOf(report, terminal), rows)}\n`;
  const cost = price ? `, ${total.cost} ${price.currency}` : "";
  const all = rows.length === 0 ? "" : `In all: ${counted(total.requests)}, ${grouped(total.units)} units${cost}.\n`;
  const open = `Still running, and not counted yet: ${counted(running.requests)}, which hold ${grouped(running.heldUnits)} units.\n`;
  return `${head}${lines}${all}${running.requests === 0 ? "" : open}`;
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
  day: { head: "DAY (UTC)", cell: ({ day }) => day ?? "" },
  month: { head: "MONTH (UTC)", cell: ({ month }) => month ?? "" },
};

function columnsOf({ by, rows, price }: Report, terminal: Terminal): Column<Row>[] {
  const most = Math.max(1, ...rows.map(({ units }) => units));
  const cells = terminal.width !== null && terminal.width < 110 ? 8 : 20;
  const input = (row: Row) => row.inputTokens + row.cachedInputTokens + row.cacheWriteTokens;
  return [
    ...by.map((group) => groupColumns[group]),
    ...(by.includes("team") ? [teamId] : []),
    ...(by.includes("person") ? [personId] : []),
    ...(by.includes("key") ? [keyId, labels] : []),
    { head: "", cell: ({ units }) => bar(cells, { used: Math.max(0, units), held: 0, limit: most }) },
    { head: "UNITS", cell: ({ units }) => grouped(units) },
    ...costColumn(price),
    { head: "REQUESTS", cell: ({ requests }) => grouped(requests) },
    { head: "INPUT", cell: (row) => grouped(input(row)), optional: true },
    { head: "OUTPUT", cell: ({ outputTokens }) => grouped(outputTokens), optional: true },
    ...(rows[0]?.standing === undefined ? [] : standing),
  ];
}

/** The tightest limit as it stands now, whatever the span of the report. */
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

function costColumn(price: Report["price"]): Column<Row>[] {
  return price ? [{ head: `COST (${price.currency})`, cell: ({ cost }) => cost ?? "" }] : [];
}

const reportHelp = `
Groups: organization, team, person, key, model, operation, outcome, and one of
hour, day, month. Requests count in the hour of their admission, in the team
that their key was in then, and for the person whose key it is. Dates are days
of UTC, and months can be given as 2026-11; an instant must be the beginning of
an hour. The end is not part of the report.

FOCUS is by day, or --by hour or month, with organization, team, person, key,
model, and operation. It needs reports.currency and
reports.price_per_million_units in sluice.yaml.

Examples:
  $ sluice usage report
  $ sluice usage report --from 2026-11 --to 2026-12 --by key,model --org acme
  $ sluice usage report --by team,day --csv >november.csv
  $ sluice usage report --from 2026-10 --to 2026-11 --focus >october.csv`;
