/**
 * All windows of a year beside what they must equal, some subjects at a time (docs/design/metering.md, Audit): totals and
 * sums of one statement are of one snapshot, and none is held for long.
 */
import type { LedgerDifference } from "../store/ledger.ts";
import { differencesIn } from "./audit.ts";
import type { Database } from "./database.ts";

/** Windows that the first statement compares: fewer where it takes long, more where it is done at once. */
const windows_first = 50;
const windows_max = 100_000;
const quick_ms = 100;
const slow_ms = 500;
/** The ids on either side of all subjects. */
const none = "00000000-0000-0000-0000-000000000000";
const all = "ffffffff-ffff-ffff-ffff-ffffffffffff";

/** `unread`: a full check sums what it counted anew, and the records from this transaction on. */
export async function differing(db: Database, unread: number | null): Promise<LedgerDifference[]> {
  const scope = unread === null ? "sealed" : "full";
  const compare = async (after: string, last: string) => {
    const began_ms = performance.now();
    const differences = await differencesIn(db, "usage_differences($1, $2, $3, $4)", [scope, unread, after, last]);
    return { differences, taken_ms: performance.now() - began_ms };
  };
  // Records that nobody has read yet are read by each statement: what that takes says nothing of its subjects.
  const { taken_ms: unread_ms } = await compare(all, all);
  const found: LedgerDifference[] = [];
  let count = windows_first;
  for (let after = none; after !== all; ) {
    const last = await pieceBehind(db, after, count);
    const { differences, taken_ms } = await compare(after, last);
    found.push(...differences);
    after = last;
    count = nextCount(count, taken_ms - unread_ms, unread_ms);
  }
  return found;
}

/** The subject at which a piece of so many windows ends; one that comes meanwhile is compared with its neighbours. */
async function pieceBehind(db: Database, after: string, count: number): Promise<string> {
  const [row] = await db.query<{ last: string | null }>(
    `select least(
       (select p.subject_id from usage_past p where p.subject_id > $1 order by p.subject_id offset $2 limit 1),
       (select n.subject_id from usage_now n where n.subject_id > $1 order by n.subject_id offset $2 limit 1)
     ) as last`,
    [after, count - 1],
  );
  return row!.last ?? all;
}

/** Of statements that take their time anyway there are few. Pure. */
function nextCount(count: number, taken_ms: number, unread_ms: number): number {
  if (taken_ms < Math.max(quick_ms, unread_ms)) return Math.min(windows_max, count * 2);
  return taken_ms > Math.max(slow_ms, 4 * unread_ms) ? Math.max(1, Math.floor(count / 2)) : count;
}
