/** Usage in words: the windows of an organization, and what the check of the ledger found. */
import { grouped, percentOf } from "../../core/inference/amounts.ts";
import { type Sealed, windowKinds } from "../../core/store/ledger.ts";
import type { Lost } from "../../core/store/lost.ts";
import { instant, minute } from "../../core/time/written.ts";
import { barColumn, type Column, type Said, tablePiece } from "./command.ts";
import type { Difference, OrganizationUsage } from "./usage-shape.ts";

export function onDifferences(differences: readonly Difference[]): string {
  const passes = differences.filter(({ auditEntry }) => auditEntry !== null).length;
  const totals = differences.length - passes;
  const sums = totals === 1 ? "1 total differs from its sum" : `${totals} totals differ from their sum`;
  const entries = `the records differ from what ${passes === 1 ? "1 entry" : `${passes} entries`} of the audit log said of them`;
  return `${[...(totals === 0 ? [] : [sums]), ...(passes === 0 ? [] : [entries])].join(", and ")}.`;
}

export function onTrust({ windows, records, days, dayRecords }: Sealed): string {
  const taken = [
    ...(windows === 0 ? [] : [`the seals of ${grouped(windows)} windows, of ${grouped(records)} records in all`]),
    ...(days === 0 ? [] : [`the roll-ups of ${grouped(days)} days, of ${grouped(dayRecords)} records`]),
  ];
  return taken.length === 0 ? "" : `Taken on trust: ${taken.join("; ")}. --full reads their records.\n`;
}

export function onLost({ receipts, nanos, noticedAt, movedAt }: Lost): string {
  const moved = movedAt ? `The database was promoted or restored; a node noticed at ${instant(movedAt)}.\n` : "";
  if (receipts === 0) return moved;
  const what = receipts === 1 ? "1 settled request" : `${grouped(receipts)} settled requests`;
  return `${moved}Lost with it: at least ${what} of ${grouped(nanos)} nanos, noticed until ${instant(noticedAt)}. See docs/databases.md.\n`;
}

/** A row of the table of windows. */
interface Line {
  name: string;
  used: number;
  held: number;
  limit: number | null;
  resetAt: Date;
}

export function usageSaid(usage: OrganizationUsage): Said {
  const { extraUsage: extra, runningRequests: running, concurrentRequests: atATime } = usage;
  const lines: Line[] = windowKinds.map((kind) => ({ name: kind, ...usage[kind] }));
  if (extra.enabled || extra.used > 0) {
    lines.push({ name: "extra", ...extra, limit: extra.capNanos, resetAt: usage.month.resetAt });
  }
  const facts = [
    ["organization", usage.organization],
    ["plan", usage.plan ?? "none: inference is refused"],
    ["extra usage", extra.enabled ? "on" : "off"],
    ["running requests", atATime === null ? grouped(running) : `${grouped(running)} of ${grouped(atATime)}`],
  ] as const;
  return { pieces: [{ facts }, tablePiece(usageColumns, lines)] };
}

const usageColumns: Column<Line>[] = [
  { head: "WINDOW", cell: (line) => line.name },
  barColumn([16, 32], (line) => line),
  { head: "PERCENT", cell: ({ used, limit }) => (limit === null ? "-" : percentOf(used, limit).toFixed(2)) },
  { head: "USED", cell: (line) => grouped(line.used) },
  { head: "LIMIT", cell: ({ limit }) => (limit === null ? "none" : grouped(limit)) },
  { head: "RESETS (UTC)", cell: (line) => minute(line.resetAt) ?? "" },
  { head: "HELD", cell: (line) => grouped(line.held), optional: true },
];

export const differenceColumns: Column<Difference>[] = [
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

export const checkHelp = `
Exits with 1 if any total differs. A running service seals windows and days
that have ended and agreed. The check trusts their seals, and reads the records
since. With --full it reads every record of the past year, piece by piece. If a
replica took over without the last commits, or a backup was restored, the check
says on stderr what was lost, because no total can show that.

The windows hour and day are the roll-ups of a day, and total those of a month.
Their nanos are in USED and RECORDED, and their tokens in HELD and HOLDING.

--full also compares the records with the hourly entries (passes) of the audit
log. For a pass, USED and HELD are the nanos and records by its entry, and
RECORDED and HOLDING those of now. The window chain means that the log itself
was changed. Keep heads of the log elsewhere, for sluice audit verify.`;
