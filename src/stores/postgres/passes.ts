/**
 * Entries of the audit log's chain that attest records. Each covers one pass, which is the records that the audit read
 * since the last entry, and has a hash over them. Anybody who keeps a head of the chain elsewhere can find out whether
 * records were changed since (docs/design/metering.md, Passes in the chain).
 */

import type { AuditEntry, AuditHead } from "../../admin/store/administration.ts";
import { auditShown, chainBeginning, chainBreak } from "../../admin/store/audit-chain.ts";
import type { LedgerDifference } from "../../features/upkeep/store/books.ts";
import { appendAuditEntry, listAudit, storeNow, transact } from "./acts.ts";
import type { Database, Querying } from "./database.ts";
import { inPieces, type PieceTimes } from "./pieces.ts";

const action = "usage.seal";
/** How many months records are kept. Months younger than this must have all their records. */
const months_kept = 13;
const entries_max = 1_000;
/**
 * The times by which the number of transactions in one statement is raised or lowered. They are short, because on the
 * embedded database requests wait for a running statement.
 */
const sealing: PieceTimes = { quick_ms: 20, slow_ms: 80 };

/** The sums of the records of one month in an audit entry. A record's id decides its month. */
interface Sum {
  records: number;
  nanos: number;
  /** SHA-256 over the digests of the transactions of these records, in hexadecimal digits. */
  hash: string;
}

/** The details of an audit entry that attests the records of the transactions `[from, until)`. */
interface Pass {
  from: number;
  until: number;
  /** When the last record ended, by the store's clock, to the microsecond. */
  ended_at: string | null;
  /** The sums by month, `YYYY-MM`. */
  months: Record<string, Sum>;
}

interface Span {
  since: number;
  until: number;
}

/** Adds an entry to the audit log for the records since the last pass. One node at a time does this. */
export async function sealRecords(db: Database): Promise<void> {
  const [span] = await db.query<Span>(spanOf);
  const pass = await passOver(db, span!, sealing);
  if (Object.keys(pass.months).length === 0) return;
  await transact(db, async (tx) => {
    const [now] = await tx.query<Span>(`${spanOf} for update`);
    if (now!.since !== span!.since) return;
    await tx.query("update usage_audit set sealed_until = $1", [span!.until]);
    const details = pass as unknown as Record<string, unknown>;
    const subject = `${pass.from}-${pass.until}`;
    await appendAuditEntry(tx, await storeNow(tx), { actor: "service", action, owner: null, subject, details });
  });
}

const spanOf = "select sealed_until as since, read_until as until from usage_audit";

/** Computes the details of the audit entry for the transactions of this span, from their records. */
async function passOver(db: Querying, span: Span, pace: PieceTimes): Promise<Pass> {
  const sums = new Map<string, { records: number; nanos: number; hasher: Bun.CryptoHasher }>();
  let last: string | null = null;
  const read = (since: number, until: number) =>
    db.query<{ month: string; records: number; nanos: number; last_ended_at: string; digests: string }>(
      "select * from usage_digests($1, $2)",
      [since, until],
    );
  await inPieces(span, pace, read, (rows) => {
    for (const { month, records, nanos, last_ended_at, digests } of rows) {
      const sum = sums.get(month) ?? { records: 0, nanos: 0, hasher: new Bun.CryptoHasher("sha256") };
      sum.records += records;
      sum.nanos += nanos;
      sum.hasher.update(digests);
      sums.set(month, sum);
      if (last === null || last < last_ended_at) last = last_ended_at;
    }
  });
  const months = [...sums]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([month, { hasher, ...sum }]): [string, Sum] => [month, { ...sum, hash: hasher.digest("hex") }]);
  return { from: span.since, until: span.until, ended_at: last, months: Object.fromEntries(months) };
}

/** Compares the records with the entries of the chain that attest them, and finds where the chain itself is broken. */
export async function passDifferences(db: Database, pace: PieceTimes): Promise<LedgerDifference[]> {
  const [now] = await db.query<{ sealed: number; dropped: string }>(
    `select sealed_until as sealed, to_char(greatest(store_now() - interval '${months_kept} months', dropped_until)
       at time zone 'UTC' - interval '1 month', 'YYYY-MM') as dropped
     from usage_audit`,
  );
  const differences: LedgerDifference[] = [];
  const spans: (Span & SealEntry)[] = [];
  let head: AuditHead = { number: 0, hash: chainBeginning };
  for (;;) {
    const entries = await listAudit(db, { order: "oldest", after: head.number, limit: entries_max });
    if (entries.length === 0) break;
    const checked = chainBreak(head, entries.map(auditShown));
    if ("broken" in checked) return [...differences, difference("chain", entries[0]!, noSum, noSum)];
    head = checked.head;
    for (const entry of entries.filter((one) => one.action === action)) {
      const pass = entry.details as unknown as Pass;
      const span = { since: pass.from, until: pass.until };
      const found = await passOver(db, span, pace);
      differences.push(...monthDifferences(entry, pass.months, found.months, now!.dropped));
      spans.push({ ...span, number: entry.number, at: entry.at });
    }
  }
  for (const gap of gapsIn(spans, now!.sealed))
    differences.push(...monthDifferences(gap, {}, (await passOver(db, gap, pace)).months, now!.dropped));
  return differences;
}

/** Finds transactions that no pass covers, each with the entry after them: nothing attests their records. */
function gapsIn(spans: readonly (Span & SealEntry)[], sealed: number): (Span & SealEntry)[] {
  const gaps: (Span & SealEntry)[] = [];
  let until = 0;
  let last: SealEntry | null = null;
  for (const span of spans.toSorted((one, other) => one.since - other.since)) {
    const { number, at } = span;
    if (span.since > until) gaps.push({ since: until, until: span.since, number, at });
    until = Math.max(until, span.until);
    last = { number, at };
  }
  if (last && sealed > until) gaps.push({ ...last, since: until, until: sealed });
  return gaps;
}

type SealEntry = Pick<AuditEntry, "number" | "at">;

/**
 * The differences of a pass by month. Months up to `dropped` are old enough to have been dropped, so they may be missing
 * as a whole, but not in part.
 */
function monthDifferences(
  entry: SealEntry,
  sealed: Pass["months"],
  found: Pass["months"],
  dropped: string,
): LedgerDifference[] {
  const months = new Set([...Object.keys(sealed), ...Object.keys(found)]);
  return [...months].flatMap((month) => {
    const [was, is] = [sealed[month] ?? noSum, found[month] ?? noSum];
    if (was.hash === is.hash || (is.records === 0 && month <= dropped)) return [];
    return [difference("pass", entry, was, is)];
  });
}

const noSum: Sum = { records: 0, nanos: 0, hash: "" };

function difference(kind: "pass" | "chain", { number, at }: SealEntry, was: Sum, is: Sum): LedgerDifference {
  const sums = { used: was.nanos, recorded: is.nanos, held: was.records, holding: is.records };
  return { organizationId: null, subjectId: null, kind, startsAt: at, entry: number, ...sums };
}
