/** Usage in words: the usage windows of an organization, and what the check of the ledger found. */
import { grouped, inWords, type Money, nanosOf, percentOf } from "../../core/inference/money.ts";
import { windowKinds } from "../../core/store/ledger.ts";
import { instant, minute } from "../../core/time/written.ts";
import { isNothing } from "../store/amounts.ts";
import type { Sealed } from "../store/ledger.ts";
import { barColumn, type Column, type Said, tablePiece } from "./command.ts";
import { windowWords } from "./standing.ts";
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

interface Lost {
  receipts: number;
  charged: Money;
  noticedAt: Date | null;
  movedAt: Date | null;
}

export function onLost({ receipts, charged, noticedAt, movedAt }: Lost): string {
  const moved = movedAt ? `The database was promoted or restored; a node noticed at ${instant(movedAt)}.\n` : "";
  if (receipts === 0) return moved;
  const what = receipts === 1 ? "1 settled request" : `${grouped(receipts)} settled requests`;
  return `${moved}Lost with it: at least ${what} of ${inWords(charged)}, noticed until ${instant(noticedAt)}. See docs/databases.md.\n`;
}

/** A row of the table of usage windows. */
interface Line {
  name: string;
  usagePercent: number;
  used: Money;
  held: Money;
  limit: Money | null;
  resetAt: Date;
}

export function usageSaid(usage: OrganizationUsage): Said {
  const { extraUsage: extra, runningRequests: running, concurrentRequests: atATime } = usage;
  const lines: Line[] = windowKinds.map((kind) => ({ name: windowWords[kind], ...usage[kind] }));
  if (extra.enabled || !isNothing(extra.used)) {
    const { used, held, cap } = extra;
    const usagePercent = percentOf(Number(nanosOf(used)), cap && Number(nanosOf(cap)));
    lines.push({ name: "extra", usagePercent, used, held, limit: cap, resetAt: usage.month.resetAt });
  }
  const facts = [
    ["organization", usage.organization],
    ["plan", usage.plan ?? "none: inference is refused"],
    ["extra usage", extra.enabled ? "on" : "off"],
    ["running requests", atATime === null ? grouped(running) : `${grouped(running)} of ${grouped(atATime)}`],
  ] as const;
  return { pieces: [{ facts }, tablePiece(usageColumns, lines)] };
}

const barOf = ({ used, held, limit }: Line) => ({
  used: Number(nanosOf(used)),
  held: Number(nanosOf(held)),
  limit: limit && Number(nanosOf(limit)),
});

const usageColumns: Column<Line>[] = [
  { head: "LIMIT OF", cell: (line) => line.name },
  barColumn([16, 32], barOf),
  { head: "PERCENT", cell: ({ usagePercent, limit }) => (limit === null ? "-" : usagePercent.toFixed(2)) },
  { head: "USED", cell: (line) => inWords(line.used) },
  { head: "LIMIT", cell: ({ limit }) => (limit === null ? "none" : inWords(limit)) },
  { head: "RESETS (UTC)", cell: (line) => minute(line.resetAt) ?? "" },
  { head: "HELD", cell: (line) => inWords(line.held), optional: true },
];

/** An amount with all its digits, because a difference may be a billionth of the currency. */
const exactly = (value: Money | number) => (typeof value === "number" ? grouped(value) : value.amount);

export const differenceColumns: Column<Difference>[] = [
  {
    head: "ORGANIZATION",
    cell: ({ organization, organizationId }) => organization ?? organizationId ?? "",
  },
  { head: "KEY OR TEAM", cell: ({ subjectId }) => subjectId ?? "" },
  { head: "WINDOW", cell: ({ window, auditEntry }) => (auditEntry ? `${window} of entry ${auditEntry}` : window) },
  { head: "FROM", cell: ({ startsAt }) => instant(startsAt) ?? "" },
  { head: "USED", cell: ({ used }) => exactly(used) },
  { head: "RECORDED", cell: ({ recorded }) => exactly(recorded) },
  { head: "HELD", cell: ({ held }) => exactly(held) },
  { head: "HOLDING", cell: ({ holding }) => exactly(holding) },
];

export const checkHelp = `
Exits with 1 if any total differs. A running service seals windows and days
that have ended and agreed. The check trusts their seals, and reads the records
since. With --full it reads every record of the past year, piece by piece. If a
replica took over without the last commits, or a backup was restored, the check
says on stderr what was lost, because no total can show that.

The windows hour and day are the roll-ups of a day, and total those of a month.
Their money is in USED and RECORDED, and their tokens in HELD and HOLDING.

--full also compares the records with the hourly entries (passes) of the audit
log. For a pass, USED and HELD are the money and records by its entry, and
RECORDED and HOLDING those of now. The window chain means that the log itself
was changed. Keep heads of the log elsewhere, for sluice audit verify.`;
