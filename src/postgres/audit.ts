/**
 * The book against itself, in pieces (docs/design/metering.md, Audit): one node of the fleet reads what was recorded since
 * the last look, compares the windows that may have changed, and seals those that have ended. Every statement is short.
 */
import { idOf } from "../store/ids.ts";
import type { Audit, LedgerDifference, Sealed } from "../store/ledger.ts";
import type { Database, Lane } from "./database.ts";
import { onOneNode } from "./fleet.ts";

/** Transactions whose records one statement reads; a batch of 256 commands is one. */
const transactions_max = 10_000;
/** Windows that one statement seals. */
const seals_max = 1_000;
/** Another node's look counts for so long. */
const fresh_minutes = 50;
/** Reading a year of records takes its time. */
const full_ms = 15 * 60_000;

export async function audit(db: Database): Promise<Audit> {
  const differences = (await onOneNode(db, "usage_audit", look)) ?? [];
  const [found] = await db.query<{ differing: number; unsealed: number }>(
    "select differing, unsealed from usage_audit",
  );
  return { differences, differing: found!.differing, sealsBehind: found!.unsealed };
}

async function look(lane: Lane): Promise<LedgerDifference[]> {
  const [last] = await lane.query<{ fresh: boolean }>(
    `select coalesce(store_now() - looked_at between '0' and make_interval(mins => $1), false) as fresh from usage_audit`,
    [fresh_minutes],
  );
  if (last!.fresh) return [];
  while ((await lane.query<{ more: boolean }>("select usage_audit_read($1) as more", [transactions_max]))[0]!.more);
  const differences = (await lane.query<DifferenceRow>("select * from usage_differences('open')")).map(differenceOf);
  while ((await lane.query<{ count: number }>("select usage_seal_ended($1) as count", [seals_max]))[0]!.count > 0);
  await lane.query("select usage_audit_done($1)", [differences.length]);
  return differences;
}

/** All windows of a year. Full: records are read again, also those of sealed windows. */
export async function check(db: Database, isFull: boolean): Promise<LedgerDifference[]> {
  const rows = await db.transaction(
    (tx) => tx.query<DifferenceRow>("select * from usage_differences($1)", [isFull ? "full" : "sealed"]),
    { statement_ms: full_ms },
  );
  return rows.map(differenceOf);
}

export async function sealed(db: Pick<Database, "query">): Promise<Sealed> {
  const [row] = await db.query<Sealed>(
    "select count(*) as windows, coalesce(sum(records), 0)::bigint as records from usage_seal",
  );
  return row!;
}

interface DifferenceRow {
  organization_id: string;
  subject_id: string | null;
  kind: LedgerDifference["kind"];
  starts_at: Date | null;
  used: number;
  recorded: number;
  held: number;
  holding: number;
}

function differenceOf(row: DifferenceRow): LedgerDifference {
  const { organization_id, subject_id: subjectId, starts_at: startsAt, ...rest } = row;
  return { organizationId: idOf(organization_id, "org_"), subjectId, startsAt, ...rest };
}
