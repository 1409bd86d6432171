/** `sluice usage …`: what organizations have used, whether the ledger balances, and how to correct it. */
import type { Command } from "commander";
import { grouped, percentOf } from "../../core/inference/amounts.ts";
import { encode } from "../../core/schema/codec.ts";
import { type Sealed, windowKinds } from "../../core/store/ledger.ts";
import type { Lost } from "../../core/store/lost.ts";
import { instant, minute } from "../../core/time/written.ts";
import type { Column } from "../management/command.ts";
import { Difference, type OrganizationUsage } from "../management/usage.ts";
import { bar } from "./bar.ts";
import { withManagement } from "./connect.ts";
import type { CommandContext } from "./context.ts";
import { type JsonFlag, jsonOption, printJson } from "./option.ts";
import { runVerb } from "./run-verb.ts";
import { facts, table } from "./table.ts";
import type { Terminal } from "./terminal.ts";
import { addReport } from "./usage-report.ts";
import { addVerbCommands } from "./verb-command.ts";

export function addUsageCommands(program: Command, context: CommandContext): void {
  const usage = program.command("usage").description("show, report, check, and adjust usage");
  addVerbCommands(usage, context, [addShow, addReport, addCheck, "adjust"]);
}

function addShow(usage: Command, { services }: CommandContext): void {
  usage
    .command("show")
    .description("show how much of its limits an organization has used")
    .argument("<org>", "slug or ID of the organization")
    .addOption(jsonOption())
    .action(async (given: string, options: JsonFlag) => {
      const input = { organization: given };
      await runVerb(services, options, "readUsage", input, (found) => describeUsage(services.terminal, found));
    });
}

function addCheck(usage: Command, { services }: CommandContext): void {
  usage
    .command("check")
    .description("compare every total of the past year with the sum of its records")
    .option("--full", "read the records of sealed windows too")
    .addOption(jsonOption())
    .addHelpText("after", checkHelp)
    .action(async (options: JsonFlag & { full?: true }) => {
      const full = options.full ?? false;
      const { differences, trusted, lost } = await withManagement(services, (manage) => manage.checkUsage({ full }));
      // Scripts read a list of differences on stdout, and a loss is no difference.
      services.terminal.err(onLost(lost));
      if (options.json)
        printJson(
          services.terminal,
          differences.map((one) => encode(Difference, one)),
        );
      else if (differences.length > 0) services.terminal.out(table(services.terminal, differenceColumns, differences));
      if (differences.length > 0) throw new Error(onDifferences(differences));
      if (!options.json) services.terminal.out(`Every total equals the sum of its records.\n${onTrust(trusted)}`);
    });
}

function onDifferences(differences: readonly Difference[]): string {
  const passes = differences.filter(({ auditEntry }) => auditEntry !== null).length;
  const totals = differences.length - passes;
  const sums = totals === 1 ? "1 total differs from its sum" : `${totals} totals differ from their sum`;
  const entries = `the records differ from what ${passes === 1 ? "1 entry" : `${passes} entries`} of the audit log said of them`;
  return `${[...(totals === 0 ? [] : [sums]), ...(passes === 0 ? [] : [entries])].join(", and ")}.`;
}

function onTrust({ windows, records, days, dayRecords }: Sealed): string {
  const taken = [
    ...(windows === 0 ? [] : [`the seals of ${grouped(windows)} windows, of ${grouped(records)} records in all`]),
    ...(days === 0 ? [] : [`the roll-ups of ${grouped(days)} days, of ${grouped(dayRecords)} records`]),
  ];
  return taken.length === 0 ? "" : `Taken on trust: ${taken.join("; ")}. --full reads their records.\n`;
}

function onLost({ receipts, units, noticedAt, movedAt }: Lost): string {
  const moved = movedAt ? `The database was promoted or restored; a node noticed at ${instant(movedAt)}.\n` : "";
  if (receipts === 0) return moved;
  const what = receipts === 1 ? "1 settled request" : `${grouped(receipts)} settled requests`;
  return `${moved}Lost with it: at least ${what} of ${grouped(units)} units, noticed until ${instant(noticedAt)}. See docs/databases.md.\n`;
}

/** A row of the table of windows. */
interface Line {
  name: string;
  used: number;
  held: number;
  limit: number | null;
  resetAt: Date;
}

function describeUsage(terminal: Terminal, usage: OrganizationUsage): string {
  const { extraUsage: extra, runningRequests: running, concurrentRequests: atATime } = usage;
  const lines: Line[] = windowKinds.map((kind) => ({ name: kind, ...usage[kind] }));
  if (extra.enabled || extra.used > 0) {
    lines.push({ name: "extra", ...extra, limit: extra.capUnits, resetAt: usage.month.resetAt });
  }
  const about = facts(terminal, [
    ["organization", usage.organization],
    ["plan", usage.plan ?? "none: inference is refused"],
    ["extra usage", extra.enabled ? "on" : "off"],
    ["running requests", atATime === null ? grouped(running) : `${grouped(running)} of ${grouped(atATime)}`],
  ]);
  const cells = terminal.width !== null && terminal.width < 110 ? 16 : 32;
  return `${about}\n${table(terminal, usageColumns(cells), lines)}`;
}

const usageColumns = (cells: number): Column<Line>[] => [
  { head: "WINDOW", cell: (line) => line.name },
  { head: "", cell: (line) => bar(cells, line) },
  { head: "PERCENT", cell: ({ used, limit }) => (limit === null ? "-" : percentOf(used, limit).toFixed(2)) },
  { head: "USED", cell: (line) => grouped(line.used) },
  { head: "LIMIT", cell: ({ limit }) => (limit === null ? "none" : grouped(limit)) },
  { head: "RESETS (UTC)", cell: (line) => minute(line.resetAt) ?? "" },
  { head: "HELD", cell: (line) => grouped(line.held), optional: true },
];

const differenceColumns: Column<Difference>[] = [
  {
    head: "ORGANIZATION",
    cell: ({ organization, organizationId }) => organization ?? organizationId ?? "",
  },
  { head: "KEY OR TEAM", cell: ({ subjectId }) => subjectId ?? "" },
  { head: "WINDOW", cell: ({ window, auditEntry }) => (auditEntry ? `${window} of entry ${auditEntry}` : window) },
  { head: "FROM", cell: ({ startsAt }) => instant(startsAt) ?? "" },
  { head: "USED", cell: ({ used }) => grouped(used) },
  { head: "RECORDED", cell: ({ recorded }) => grouped(recorded) },
  { head: "HELD", cell: ({ held }) => grouped(held) },
  { head: "HOLDING", cell: ({ holding }) => grouped(holding) },
];

const checkHelp = `
Exits with 1 if any total differs. A running service seals windows and days
that have ended and agreed. The check trusts their seals, and reads the records
since. With --full it reads every record of the past year, piece by piece. If a
replica took over without the last commits, or a backup was restored, the check
says on stderr what was lost, because no total can show that.

The windows hour and day are the roll-ups of a day, and total those of a month.
Their units are in USED and RECORDED, and their tokens in HELD and HOLDING.

--full also compares the records with the hourly entries (passes) of the audit
log. For a pass, USED and HELD are the units and records by its entry, and
RECORDED and HOLDING those of now. The window chain means that the log itself
was changed. Keep heads of the log elsewhere, for sluice audit verify.`;
