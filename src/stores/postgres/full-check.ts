/**
 * Compares a whole year of the ledger with its records, in many short statements (docs/design/metering.md, Audit). A
 * full check counts every record again, into a table of its own. It also compares the records with the hashes that
 * entries of the audit log's chain have of them.
 */
import type { LedgerDifference } from "../../features/upkeep/store/books.ts";
import { daysOf, differencesFrom, differencesIn, rollUp, totalDifferences } from "./audit.ts";
import type { Database, Lane } from "./database.ts";
import { onOneNode } from "./fleet.ts";
import { passDifferences } from "./passes.ts";
import { inPieces } from "./pieces.ts";

const pace = { quick_ms: 100, slow_ms: 500 };

/**
 * Checks all windows of a year and the roll-ups of its days. A full check also reads sealed records again, which were
 * found right earlier and not read since.
 */
export async function checkYear(db: Database, isFull: boolean): Promise<LedgerDifference[]> {
  // New records are read first, so that the check covers them.
  await rollUp(db);
  const differences = isFull ? await counted(db) : await differencesIn(db, "usage_differences($1)", ["sealed"]);
  const days = await daysOf(
    db,
    `select d.day from (
       select starts_at as day from usage_rolled where $1 or sealed_at is null
       union select starts_at from usage_day where $1
     ) d where d.day > usage_checked_from() order by 1`,
    [isFull],
  );
  if (isFull) differences.push(...(await passDifferences(db, pace)));
  for (const day of days) differences.push(...(await differencesIn(db, "usage_day_differences($1)", [day])));
  differences.push(...(await totalDifferences(db, days)));
  return differences;
}

async function counted(db: Database): Promise<LedgerDifference[]> {
  const found = await onOneNode(db, "usage_recount", async (lane) => {
    await emptied(lane);
    try {
      const [found] = await lane.query<{ until: number }>("select read_until as until from usage_audit");
      const { until } = found!;
      const unrolled = await countAnew(lane, until);
      return [...(await differencesIn(db, "usage_differences('full', $1)", [until])), ...unrolled];
    } finally {
      // If the deletion fails, the next full check deletes the rows. The failure must not lose a result that took
      // hours.
      await emptied(lane).catch(() => {});
    }
  });
  if (found) return found;
  throw new Error("another full check is under way; wait until it has ended, or check without --full");
}

/** Deletes the rows of a full check, which are as many as the windows of a year, in many short statements. */
async function emptied(lane: Lane): Promise<void> {
  const size = "select (pg_relation_size('usage_recount') / current_setting('block_size')::int)::int8 as pages";
  const [table] = await lane.query<{ pages: number }>(size);
  const those = "ctid >= concat('(', $1::int8, ',0)')::tid and ctid < concat('(', $2::int8, ',0)')::tid";
  await inPieces({ since: 0, until: table!.pages }, pace, (...pages) =>
    lane.query(`delete from usage_recount where ${those}`, pages),
  );
}

/** Counts all records again. Returns the differences for records that are in no roll-up. */
async function countAnew(lane: Lane, until: number): Promise<LedgerDifference[]> {
  const unrolled: LedgerDifference[] = [];
  const read = async (...piece: [number, number]) => {
    await lane.query("select usage_count_anew($1, $2)", piece);
    return lane.query<LedgerDifference>(differencesFrom("usage_unrolled($1, $2)"), piece);
  };
  await inPieces({ since: 0, until }, pace, read, (found) => unrolled.push(...found));
  return unrolled;
}
