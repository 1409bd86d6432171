/** `sluice usage …`: what organizations have used, whether the book is right, and how it is mended. */
import { type Command, Option } from "commander";
import { percentOf } from "../admission/windows.ts";
import { Refusal } from "../auth/refusal.ts";
import type { OrganizationUsage, OwnedDifference } from "../auth/usage-verbs.ts";
import { windowKinds } from "../store/ledger.ts";
import { bar } from "./bar.ts";
import type { Building } from "./building.ts";
import { jsonOption, printJson, units } from "./option.ts";
import { reached } from "./reach.ts";
import type { Services } from "./services.ts";
import { adjustmentJson, differenceJson, usageJson } from "./shown.ts";
import { type Column, facts, grouped, instant, minute, table } from "./table.ts";
import type { Terminal } from "./terminal.ts";

interface Format {
  json?: boolean;
}

export function addUsageCommands(program: Command, { services }: Building): void {
  const usage = program.command("usage").description("usage: windows, the book against itself, corrections");
  addShow(usage, services);
  addCheck(usage, services);
  addAdjust(usage, services);
}

function addShow(usage: Command, services: Services): void {
  usage
    .command("show")
    .description("show what an organization has used of its windows")
    .argument("<org>", "its slug or id")
    .addOption(jsonOption())
    .action(async (given: string, options: Format) => {
      const found = await reached(services, (manage) => manage.readUsage({ organization: given }));
      if (options.json) return printJson(services.terminal, usageJson(found));
      services.terminal.out(shownUsage(services.terminal, found));
    });
}

function addCheck(usage: Command, services: Services): void {
  usage
    .command("check")
    .description("compare every total of a year with the sum of its records; 1 when they differ")
    .addOption(jsonOption())
    .addHelpText("after", checkHelp)
    .action(async (options: Format) => {
      const differences = await reached(services, (manage) => manage.checkUsage({}));
      if (options.json) printJson(services.terminal, differences.map(differenceJson));
      else if (differences.length > 0) services.terminal.out(table(services.terminal, differenceColumns, differences));
      if (differences.length > 0) {
        const what =
          differences.length === 1 ? "1 total differs from its" : `${differences.length} totals differ from their`;
        throw new Refusal(`${what} sum.`);
      }
      if (!options.json) services.terminal.out("Every total equals the sum of its records.\n");
    });
}

function addAdjust(usage: Command, services: Services): void {
  usage
    .command("adjust")
    .description("add to what was used of a window of now, or take from it, by an entry of its own")
    .argument("<org>", "its slug or id")
    .addOption(
      new Option("--window <window>", "which; all is the first three")
        .choices(["session", "week", "month", "extra", "all"])
        .makeOptionMandatory(),
    )
    .addOption(
      new Option("--units <±n>", "how many, such as -250000; below nothing it does not go")
        .argParser(units(Number.NEGATIVE_INFINITY))
        .makeOptionMandatory(),
    )
    .requiredOption("--reason <text>", "why, for the audit log")
    .addOption(jsonOption())
    .addHelpText("after", adjustExamples)
    .action(async (given: string, options: Format & { window: string; units: number; reason: string }) => {
      const { window, reason } = options;
      const done = await reached(services, (manage) =>
        manage.adjustUsage({ organization: given, window, units: options.units, reason }),
      );
      if (options.json) return printJson(services.terminal, adjustmentJson(done));
      for (const { kind, added } of done.entries) {
        services.terminal.out(
          added === null
            ? `${done.organization.slug}, ${kind}: none is open.\n`
            : `${done.organization.slug}, ${kind}: ${added > 0 ? "+" : ""}${grouped(added)} units.\n`,
        );
      }
    });
}

/** One line of the table of windows. */
interface Line {
  name: string;
  used: number;
  held: number;
  limit: number | null;
  resetAt: Date;
}

function shownUsage(terminal: Terminal, { organization, plan, usage }: OrganizationUsage): string {
  const { windows, extra, running } = usage;
  const lines: Line[] = windowKinds.map((kind) => ({ name: kind, ...windows[kind] }));
  if (extra.enabled || extra.used > 0) {
    lines.push({ name: "extra", ...extra, limit: extra.capUnits, resetAt: windows.month.resetAt });
  }
  const atATime = plan?.concurrentRequests ?? null;
  const about = facts(terminal, [
    ["organization", organization.slug],
    ["plan", organization.plan ?? "none: inference is refused"],
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

const differenceColumns: Column<OwnedDifference>[] = [
  { head: "ORGANIZATION", cell: ({ organization, difference }) => organization?.slug ?? difference.organizationId },
  { head: "WINDOW", cell: ({ difference }) => difference.kind },
  { head: "FROM", cell: ({ difference }) => instant(difference.startsAt) ?? "" },
  { head: "USED", cell: ({ difference }) => grouped(difference.used) },
  { head: "RECORDED", cell: ({ difference }) => grouped(difference.recorded) },
  { head: "HELD", cell: ({ difference }) => grouped(difference.held) },
  { head: "HOLDING", cell: ({ difference }) => grouped(difference.holding) },
];

const checkHelp = `
It reads every record of the year. On the embedded database, which does one
thing at a time, requests wait meanwhile: a second or so for 100,000 records.`;
const adjustExamples = `
Examples:
  $ sluice usage adjust acme --window all --units -250000 --reason "outage of 3 May"
  $ sluice usage adjust acme --window month --units 1000000 --reason "offline batch"`;
