/**
 * Brings a database to the shape that this build knows. Each migration runs in a transaction that first takes one
 * advisory lock and then checks which migrations are applied, so that nodes that start together apply each one once.
 * What was applied is remembered with a checksum: an edited migration, or a database that is newer than this build, is
 * refused.
 */
import administration from "./migrations/0001_baseline/administration.sql" with { type: "text" };
import audit from "./migrations/0001_baseline/audit.sql" with { type: "text" };
import calendars from "./migrations/0001_baseline/calendars.sql" with { type: "text" };
import directory from "./migrations/0001_baseline/directory.sql" with { type: "text" };
import invitations from "./migrations/0001_baseline/invitations.sql" with { type: "text" };
import ledgerAdmissions from "./migrations/0001_baseline/ledger_admissions.sql" with { type: "text" };
import ledgerBook from "./migrations/0001_baseline/ledger_book.sql" with { type: "text" };
import ledgerCommands from "./migrations/0001_baseline/ledger_commands.sql" with { type: "text" };
import ledgerSettlements from "./migrations/0001_baseline/ledger_settlements.sql" with { type: "text" };
import ledgerSubjects from "./migrations/0001_baseline/ledger_subjects.sql" with { type: "text" };
import ledgerTables from "./migrations/0001_baseline/ledger_tables.sql" with { type: "text" };
import ledgerWindows from "./migrations/0001_baseline/ledger_windows.sql" with { type: "text" };
import limitRequests from "./migrations/0001_baseline/limit_requests.sql" with { type: "text" };
import limits from "./migrations/0001_baseline/limits.sql" with { type: "text" };
import notices from "./migrations/0001_baseline/notices.sql" with { type: "text" };
import partitions from "./migrations/0001_baseline/partitions.sql" with { type: "text" };
import people from "./migrations/0001_baseline/people.sql" with { type: "text" };
import responses from "./migrations/0001_baseline/responses.sql" with { type: "text" };
import rollups from "./migrations/0001_baseline/rollups.sql" with { type: "text" };

export interface Migration {
  /** The name, such as `0001_baseline`: four digits without gaps, and what the migration is about. */
  name: string;
  sql: string;
  /**
   * Whether builds that do not know the migration can go on using the database: docs/operating.md, Starting, stopping,
   * upgrading. If absent, they cannot, and their nodes are not ready from then on.
   */
  additive?: true;
}

/**
 * The files that create a new database, one for each area. The order matters: SQL functions need functions of earlier
 * files.
 */
const baseline = [
  directory,
  people,
  invitations,
  administration,
  notices,
  responses,
  limits,
  limitRequests,
  ledgerTables,
  calendars,
  ledgerWindows,
  ledgerBook,
  ledgerCommands,
  ledgerAdmissions,
  ledgerSettlements,
  ledgerSubjects,
  audit,
  rollups,
  partitions,
].join("\n");

/**
 * The migrations in the order in which they are applied. One that was released is never changed again: from then on
 * `migrations/checksums` has its hash. Until then it may be edited in place.
 */
export const migrations: readonly Migration[] = [{ name: "0001_baseline", sql: baseline }];

/** The statements that the migrator needs of a database. */
interface Statements {
  query<Row>(text: string, params?: readonly unknown[]): Promise<Row[]>;
  exec(sql: string): Promise<void>;
}
export interface Migrated extends Statements {
  transaction<T>(work: (tx: Statements) => Promise<T>, options: { statement_ms: number }): Promise<T>;
}

/** Thrown if this build cannot use this database; the message says why and what to do. */
export class MigrationError extends Error {
  override name = "MigrationError";
}

/** One lock for all builds: the bytes of "sluice" as a number. */
const lockNumber = 126944612246373;

/** The time limit of a statement. A migration may take long on much data, and other nodes wait for it. */
const statement_ms = 30 * 60_000;

/** The SHA-256 of a migration in hex. It does not depend on the line ends of a checkout. */
export function checksumOf(migration: Migration): string {
  return new Bun.CryptoHasher("sha256").update(migration.sql.replaceAll("\r\n", "\n")).digest("hex");
}

/**
 * Applies the missing migrations, and returns their names in order: none for a newer database that this build can use,
 * because a roll-back migrates too. Throws MigrationError if this build may not migrate the database.
 */
export async function migrate(db: Migrated, known: readonly Migration[] = migrations): Promise<string[]> {
  const applied: string[] = [];
  while (true) {
    if ((await pendingMigrations(db, known)).length === 0) return applied;
    const name = await db.transaction((tx) => applyNext(tx, known), { statement_ms });
    if (name === null) return applied;
    applied.push(name);
  }
}

/** Names of what `migrate` would apply. Throws MigrationError for a database that this build may not touch. */
export async function pendingMigrations(db: Statements, known: readonly Migration[] = migrations): Promise<string[]> {
  return missingIn(await schemaOf(db, known));
}

/** Throws MigrationError unless the database has the very schema of this build. */
export async function assertCurrent(db: Statements, known: readonly Migration[] = migrations): Promise<void> {
  const problem = differing(await schemaOf(db, known));
  if (problem) throw new MigrationError(problem);
}

/**
 * Makes a database ready for a node that is to serve, and returns the names of applied migrations; `mayMigrate` says
 * whether it may apply any. The schema may be newer if this build can use it: a node may be restarted while a new
 * version is rolled out.
 */
export async function prepareToServe(
  db: Migrated,
  mayMigrate: boolean,
  known: readonly Migration[] = migrations,
): Promise<string[]> {
  const schema = await schemaOf(db, known);
  if (schema.is === "older" && mayMigrate) return migrate(db, known);
  const problem = unfitting(schema);
  if (problem) throw new MigrationError(problem);
  return [];
}

/** How a database's schema compares with that of a build. */
export type SchemaState =
  | { is: "current" }
  /** `missing`: what has to be applied, in order. */
  | { is: "older"; missing: string[] }
  /**
   * `beyond`: the database's migrations that this build does not know; `additive`: this build can use the database all
   * the same.
   */
  | { is: "newer"; beyond: string[]; additive: boolean }
  /** The database begins with another migration than the build: it was made by 0.2 or before it. */
  | { is: "outdated" }
  /** The database has this migration in the place of another one of the build: it was made by an unreleased build. */
  | { is: "other"; name: string };

export async function schemaOf(db: Statements, known: readonly Migration[] = migrations): Promise<SchemaState> {
  return compared(await appliedIn(db), known);
}

/** Why a node of this build cannot work on a database with this schema, and what to do; null if it can. */
export function unfitting(schema: SchemaState): string | null {
  switch (schema.is) {
    case "current":
      return null;
    case "older": {
      const { missing } = schema;
      const what =
        missing.length === 1 ? `the migration ${missing[0]}` : `${missing.length} migrations from ${missing[0]} on`;
      return `the database is older than this build of sluice: it lacks ${what}; run sluice migrate, or start sluice serve`;
    }
    case "newer":
      return schema.additive ? null : newer(schema.beyond);
    case "outdated":
      return (
        "the database was made by sluice 0.2 or before it, and nothing in it can be carried over: make a new one " +
        "(createdb sluice_new, and its name in DATABASE_URL; or an empty folder as SLUICE_DATA_DIR) and run sluice migrate"
      );
    case "other":
      return (
        `the migration ${schema.name} of this database is not one of this build: an unreleased build made it, and it ` +
        "cannot be upgraded; run that build, or start with an empty database (another DATABASE_URL or SLUICE_DATA_DIR)"
      );
  }
}

/** Why the schema is not that of this build, and what to do; null if it is. */
export function differing(schema: SchemaState): string | null {
  return schema.is === "newer" ? newer(schema.beyond) : unfitting(schema);
}

function newer([name]: string[]): string {
  return (
    `the database is newer than this build of sluice: it has the migration ${name}, which this build does not know; ` +
    "run the build that made it, or a later one"
  );
}

function missingIn(schema: SchemaState): string[] {
  if (schema.is === "current") return [];
  if (schema.is === "older") return schema.missing;
  if (schema.is === "newer" && schema.additive) return [];
  throw new MigrationError(differing(schema) ?? "");
}

async function applyNext(tx: Statements, known: readonly Migration[]): Promise<string | null> {
  await tx.query("select pg_advisory_xact_lock($1)", [lockNumber]);
  await tx.exec(`create table if not exists schema_migration (
    name text primary key, checksum text not null, applied_at timestamptz not null default clock_timestamp()
  )`);
  // A database of 0.1 does not have the column `additive`; schemaOf can read it all the same. The table is altered only
  // if the column is missing: altering would lock out every node that checks whether it is ready, for as long as the
  // migration runs.
  const [marked] = await tx.query(
    "select from pg_attribute where attrelid = 'schema_migration'::regclass and attname = 'additive'",
  );
  if (!marked) await tx.exec("alter table schema_migration add column additive boolean not null default false");
  const schema = await schemaOf(tx, known);
  const next = known.find(({ name }) => name === missingIn(schema)[0]);
  if (!next) return null;
  await tx.exec(next.sql);
  await tx.query("insert into schema_migration (name, checksum, additive) values ($1, $2, $3)", [
    next.name,
    checksumOf(next),
    next.additive ?? false,
  ]);
  return next.name;
}

export interface Applied {
  name: string;
  checksum: string;
  additive: boolean;
}

export async function appliedIn(db: Statements): Promise<Applied[]> {
  const [found] = await db.query<{ there: boolean }>("select to_regclass('schema_migration') is not null as there");
  if (!found?.there) return [];
  return db.query<Applied>(
    `select name, checksum, coalesce((to_jsonb(one) ->> 'additive')::boolean, false) as additive
     from schema_migration as one order by name`,
  );
}

/** Compares the applied migrations with the known ones. Pure. */
export function compared(applied: readonly Applied[], known: readonly Migration[] = migrations): SchemaState {
  for (const [index, one] of applied.entries()) {
    const ours = known[index];
    if (!ours) {
      const beyond = applied.slice(index);
      return { is: "newer", beyond: beyond.map(({ name }) => name), additive: beyond.every((it) => it.additive) };
    }
    if (index === 0 && ours.name !== one.name) return { is: "outdated" };
    if (ours.name !== one.name || checksumOf(ours) !== one.checksum) return { is: "other", name: one.name };
  }
  const missing = known.slice(applied.length).map(({ name }) => name);
  return missing.length === 0 ? { is: "current" } : { is: "older", missing };
}
