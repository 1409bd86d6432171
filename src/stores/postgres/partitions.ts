/**
 * Maintains the partitions of records: creates those of coming months, and drops old ones. One node of the fleet at a
 * time does this work, in statements that are transactions of their own. None waits longer than 100 ms for a lock,
 * because later statements would wait behind it. A step that cannot be done now, or that takes too long, is put off
 * until the next time (docs/design/metering.md, Partitions).
 */
import type { Upkeep } from "../../features/upkeep/store/books.ts";
import type { Database, Lane, Querying } from "./database.ts";
import { DatabaseError } from "./database-error.ts";
import { onOneNode } from "./fleet.ts";
import { forgetClosed } from "./organization-life.ts";
import { isTooLong } from "./pieces.ts";

const months_ahead = 6;
const months_kept = 13;
/** The settings of the connection. A plan that reads a whole table may seem cheap when the planner cannot know a date. */
export const settings = { lock_timeout: "100", enable_seqscan: "off" };
const hours_of_month = 720;
/** The most old windows and roll-ups that one statement deletes. */
const rows_max = 5_000;
/** The tables from which old rows are deleted, each with the column of a row's date. */
const kept = [
  ["usage_past", "ends_at"],
  ["usage_seal", "ends_at"],
  ["usage_tally", "ends_at"],
  ["usage_opening", "ends_at"],
  ["usage_hour", "starts_at"],
  ["usage_day", "starts_at"],
  ["usage_total", "starts_at"],
  ["usage_rolled", "starts_at"],
] as const;

/** Does the work, and then counts the months: for an operator they count as long as the work fails, too. */
export async function keepUpPartitions(db: Database): Promise<Upkeep> {
  let failed: Pick<Upkeep, "failure"> = {};
  const working = onOneNode(db, "usage_upkeep", (lane) => work(lane, db.kind), { settings });
  const putOff = await working.catch((failure: unknown) => {
    failed = { failure };
    return null;
  });
  return { monthsAhead: await monthsAhead(db), putOff: putOff ?? [], ...failed };
}

async function work(lane: Lane, kind: Database["kind"]): Promise<string[]> {
  const putOff = await makeMonths(lane);
  if (!(await atOnce(async () => putOff.push(...(await goOn(lane)))))) putOff.push("usage_audit");
  putOff.push(...(await dropMonths(lane, kind)));
  for (const [table, column] of kept) {
    if (!(await atOnce(() => dropAllOld(lane, table, column)))) putOff.push(table);
  }
  if (!(await atOnce(() => narrow(lane)))) putOff.push("usage_narrow");
  if (!(await atOnce(() => dropLost(lane)))) putOff.push("usage_lost");
  if (!(await atOnce(() => forgetClosed(lane)))) putOff.push("organization");
  return putOff;
}

/**
 * Moves the upkeep's own time on, by a day an hour at most. By this time the upkeep decides what is old. If the clock has jumped
 * further, returns a text about what is not deleted yet.
 */
async function goOn(lane: Lane): Promise<string[]> {
  const [clock] = await lane.query<{ ahead: number }>("select usage_upkeep_goes_on() as ahead");
  return clock!.ahead > 0 ? [`what is old by a clock ${clock!.ahead} days ahead of the last upkeep`] : [];
}

async function dropAllOld(lane: Lane, table: string, column: string): Promise<void> {
  while ((await dropOld(lane, table, column)) === rows_max) await Bun.sleep(1);
}

/** Computes the summaries in one part of the BRIN indexes anew. Each hour has another part, so a month covers all. */
function narrow(lane: Lane): Promise<unknown> {
  const narrowing =
    "select usage_narrow((floor(date_part('epoch', store_now()) / 3600)::int8 % $1::int)::int, $1::int)";
  return lane.query(narrowing, [hours_of_month]);
}

function dropLost(lane: Lane): Promise<unknown> {
  const old = "delete from usage_lost where noticed_at < usage_upkept_at() - make_interval(months => $1)";
  return lane.query(old, [months_kept]);
}

/** Creates missing partitions for these ids, which come from a node whose clock is far off. */
export async function makePartitions(db: Querying, ids: readonly string[]): Promise<void> {
  for (const id of ids) await db.query("select usage_partition($1)", [id]);
}

/** Whether a statement failed because there is no partition for its record. */
export const lacksPartition = (error: unknown): boolean => error instanceof DatabaseError && error.code === "23514";

async function makeMonths(lane: Lane): Promise<string[]> {
  const putOff: string[] = [];
  for (const { id } of await lane.query<{ id: string }>("select id from usage_months($1) id", [months_ahead])) {
    if (!(await atOnce(() => lane.query("select usage_partition($1)", [id])))) putOff.push(id);
  }
  return putOff;
}

interface Old {
  name: string;
  is_attached: boolean;
  is_leaving: boolean;
}

async function dropMonths(lane: Lane, kind: Database["kind"]): Promise<string[]> {
  const old = await lane.query<Old>(
    `select name, is_attached, is_leaving from usage_partitions()
     where month at time zone 'UTC' + interval '1 month' <= ${keptSince} order by is_leaving desc, month`,
    [months_kept],
  );
  const isConcurrent = kind === "postgres" && (await isOwner(lane));
  for (const [index, month] of old.entries()) {
    // Only one partition can be detached at a time, so the remaining months wait for the next run.
    if (!(await atOnce(() => dropMonth(lane, isConcurrent, month)))) return old.slice(index).map(({ name }) => name);
  }
  return [];
}

const keptSince = "usage_upkept_at() at time zone 'UTC' - make_interval(months => $1)";

/**
 * Drops a month's partition step by step; the work may stop after any step and go on at the next run. Once the
 * partition is detached, nothing is written into it: its rows then decide whether it is dropped. Only the owner of the
 * table on a server can detach it without a lock; others call a function that may (deploy/roles.sql).
 */
async function dropMonth(lane: Lane, isConcurrent: boolean, { name, is_attached, is_leaving }: Old): Promise<void> {
  if (!isConcurrent) {
    await lane.query("select usage_drop_month($1)", [name]);
    return;
  }
  if (is_leaving) await lane.query(`alter table usage_record detach partition ${name} finalize`);
  else if (is_attached) {
    if (await hasYoung(lane, name)) return;
    await lane.query(`alter table usage_record detach partition ${name} concurrently`);
  }
  if (await hasYoung(lane, name)) await lane.query("select usage_attach($1)", [name]);
  else await lane.query(`drop table ${name}`);
}

async function isOwner(lane: Lane): Promise<boolean> {
  const [row] = await lane.query<{ owns: boolean }>(
    "select pg_has_role(relowner, 'USAGE') as owns from pg_class where oid = 'usage_record'::regclass",
  );
  return row!.owns;
}

/**
 * Whether a partition has recent records: a node whose clock is a year slow writes today's records into an old month.
 */
async function hasYoung(lane: Lane, name: string): Promise<boolean> {
  const [row] = await lane.query<{ young: boolean }>(youngRows(name), [months_kept]);
  return row!.young;
}

export const youngRows = (name: string) =>
  `select exists (select from ${name} where ended_at >= (select (${keptSince}) at time zone 'UTC')) as young`;

async function dropOld(lane: Lane, table: string, column: string): Promise<number> {
  const gone = await lane.query(
    `delete from ${table} where ctid = any (array(${oldRows(table, column)})) returning 1 as one`,
    [months_kept + 1, rows_max],
  );
  return gone.length;
}

/**
 * SQL for at most $2 rows that are older than $1 months. A subquery reads the clock once, so that the query can use the
 * index.
 */
export const oldRows = (table: string, column: string) =>
  `select ctid from ${table} where ${column} < (select usage_upkept_at() - make_interval(months => $1)) limit $2`;

/** The number of coming months whose partitions exist. */
async function monthsAhead(db: Querying): Promise<number> {
  const [row] = await db.query<{ count: number }>(
    `select count(*) as count from usage_months($1) id join usage_partitions() p on p.month = usage_record_time(id)
     where p.is_attached and p.month > store_now()`,
    [months_ahead],
  );
  return row!.count;
}

/** Runs a step. Returns false if another session has a lock that the step needs, or if it takes too long. */
async function atOnce(step: () => Promise<unknown>): Promise<boolean> {
  try {
    await step();
    return true;
  } catch (error) {
    if (isTooLong(error) || (error instanceof DatabaseError && error.code === "55P03")) return false;
    throw error;
  }
}
