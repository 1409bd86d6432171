/**
 * Checks the ledger against itself, in pieces (docs/design/metering.md, Audit). Every minute one node of the fleet
 * reads new records and adds them to the roll-ups. Every hour it compares the windows and days that may have changed.
 * It then seals those that have ended, so that they are not read again. No statement blocks others for long.
 */
import type { Sealed } from "../../admin/store/ledger.ts";
import type { Audit, LedgerDifference } from "../../features/upkeep/store/books.ts";
import type { Database, Lane, Querying } from "./database.ts";
import { onOneNode } from "./fleet.ts";
import { sealRecords } from "./passes.ts";
import { type PieceTimes, pacing } from "./pieces.ts";
import { shownId } from "./rows.ts";

/**
 * One statement reads the records of a number of transactions. It reads more than the last one if that took less than
 * `quick_ms`, and fewer if it took more than `slow_ms`.
 */
const reading: PieceTimes = { quick_ms: 50, slow_ms: 200 };
/** The most windows that one statement seals. */
const seals_max = 1_000;
/** How long a node uses the result of another node's check before it checks the ledger itself. */
const fresh_minutes = 50;
/** The most time that reading the records of a day may take. */
export const long_ms = 15 * 60_000;

/** How long a check waits for a running roll-up. */
const wait_ms = 15_000;

/** Adds new records to the roll-ups, unless another node is doing that. */
export async function rollUp(db: Database): Promise<void> {
  await onOneNode(db, "usage_audit", readRecords);
}

export async function checkBooks(db: Database): Promise<Audit> {
  const differences = (await onOneNode(db, "usage_audit", (lane) => compare(db, lane), { wait_ms })) ?? [];
  const [found] = await db.query<{ differing: number; unsealed: number }>(
    "select differing, unsealed from usage_audit",
  );
  return { differences, differing: found!.differing, sealsBehind: found!.unsealed };
}

async function compare(db: Database, lane: Lane): Promise<LedgerDifference[]> {
  const [last] = await lane.query<{ fresh: boolean }>(
    `select coalesce(store_now() - looked_at between '0' and make_interval(mins => $1), false) as fresh from usage_audit`,
    [fresh_minutes],
  );
  if (last!.fresh) return [];
  await readRecords(lane);
  const differences = await lane.query<LedgerDifference>(differencesFrom("usage_differences('open')"));
  while ((await lane.query<{ count: number }>("select usage_seal_ended($1) as count", [seals_max]))[0]!.count > 0);
  const ended = await daysOf(
    lane,
    "select starts_at as day from usage_rolled where sealed_at is null and starts_at <= store_now() - interval '24 hours' order by 1",
  );
  for (const day of ended) differences.push(...(await differencesIn(db, "usage_seal_day($1)", [day])));
  differences.push(...(await totalDifferences(db, ended)));
  await sealRecords(db);
  await lane.query("select usage_audit_done($1)", [differences.length]);
  return differences;
}

/** Reads the records that were added since the last roll-up, and adds them to the roll-ups. */
async function readRecords(lane: Lane): Promise<void> {
  const next = pacing(reading);
  for (let isMore = true; isMore; ) {
    await next(async (transactions) => {
      isMore = (await lane.query<{ more: boolean }>("select usage_audit_read($1) as more", [transactions]))[0]!.more;
    });
  }
}

/**
 * Runs a SQL function of the audit and returns the differences that it finds, in a transaction of its own that may take
 * longer than others.
 */
export function differencesIn(db: Database, call: string, parameters: readonly unknown[]): Promise<LedgerDifference[]> {
  const work = { statement_ms: long_ms };
  return db.transaction((tx) => tx.query<LedgerDifference>(differencesFrom(call), parameters), work);
}

/** Runs a statement, and returns the days in the column `day` of its rows. */
export async function daysOf(db: Querying, text: string, values: unknown[] = []): Promise<Date[]> {
  return (await db.query<{ day: Date }>(text, values)).map(({ day }) => day);
}

/**
 * For each month that contains one of these days, compares the month's totals with its days; for each key, compares the
 * overall sum with the months.
 */
export async function totalDifferences(db: Database, days: readonly Date[]): Promise<LedgerDifference[]> {
  if (days.length === 0) return [];
  const months = new Set(days.map((day) => `${day.toISOString().slice(0, 7)}-01T00:00:00Z`));
  const differences: LedgerDifference[] = [];
  for (const month of [...months, "infinity"])
    differences.push(...(await differencesIn(db, "usage_total_differences($1)", [month])));
  return differences;
}

export async function sealed(db: Pick<Database, "transaction">): Promise<Sealed> {
  const sums = `select s.windows, s.records, d.days, d.day_records as "dayRecords"
     from (select count(*) as windows, coalesce(sum(records), 0)::bigint as records from usage_seal) s,
       (select count(*) as days, coalesce(sum(records), 0)::bigint as day_records from usage_rolled
        where sealed_at is not null) d`;
  const [row] = await db.transaction((tx) => tx.query<Sealed>(sums), { statement_ms: long_ms });
  return row!;
}

/**
 * SQL for the differences that a SQL function finds. Comparisons of roll-ups have no column `subject_id`. The
 * organization is null in totals of all organizations.
 */
export const differencesFrom = (call: string) => `
  select ${shownId("d.organization_id", "org_")} as "organizationId", to_jsonb(d) ->> 'subject_id' as "subjectId",
    d.starts_at as "startsAt", d.kind, d.used, d.recorded, d.held, d.holding from ${call} d`;
