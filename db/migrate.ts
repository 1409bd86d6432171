/**
 * Brings a database to the shape that this build knows. Each migration runs in a transaction that first takes one
 * advisory lock and then looks what is applied, so that nodes that start together apply each one once. What was applied
 * is remembered with a checksum: an edited migration, or a database that is newer than this build, is refused.
 */
import directory from "./migrations/0001_directory.sql" with { type: "text" };
import ledgerTables from "./migrations/0002_ledger_tables.sql" with { type: "text" };
import ledgerWindows from "./migrations/0003_ledger_windows.sql" with { type: "text" };
import ledgerVerbs from "./migrations/0004_ledger_verbs.sql" with { type: "text" };
import ledgerReports from "./migrations/0005_ledger_reports.sql" with { type: "text" };
import rates from "./migrations/0006_rates.sql" with { type: "text" };
import refusals from "./migrations/0007_refusals.sql" with { type: "text" };
import responses from "./migrations/0008_responses.sql" with { type: "text" };
import calibration from "./migrations/0009_calibration.sql" with { type: "text" };

export interface Migration {
  /** `0001_directory`: four digits without gaps, and what it is about. */
  name: string;
  sql: string;
}

/** In the order in which they are applied. Append only: `migrations/checksums` holds each as it was when it was added. */
export const migrations: readonly Migration[] = [
  { name: "0001_directory", sql: directory },
  { name: "0002_ledger_tables", sql: ledgerTables },
  { name: "0003_ledger_windows", sql: ledgerWindows },
  { name: "0004_ledger_verbs", sql: ledgerVerbs },
  { name: "0005_ledger_reports", sql: ledgerReports },
  { name: "0006_rates", sql: rates },
  { name: "0007_refusals", sql: refusals },
  { name: "0008_responses", sql: responses },
  { name: "0009_calibration", sql: calibration },
];

/** What the migrator needs of a database. */
interface Statements {
  query<Row>(text: string, params?: readonly unknown[]): Promise<Row[]>;
  exec(sql: string): Promise<void>;
}
export interface Migrated extends Statements {
  transaction<T>(work: (tx: Statements) => Promise<T>, options: { statement_ms: number }): Promise<T>;
}

/** This database cannot be used by this build; the message says why and what to do. */
export class MigrationError extends Error {
  override name = "MigrationError";
}

/** One lock for all builds: the bytes of "sluice" as a number. */
const lockNumber = 126944612246373;

/** A migration may take long on much data, and other nodes wait for it. */
const statement_ms = 30 * 60_000;

/** SHA-256 in hex, the same whatever line ends a checkout has. */
export function checksumOf(migration: Migration): string {
  return new Bun.CryptoHasher("sha256").update(migration.sql.replaceAll("\r\n", "\n")).digest("hex");
}

/** Applies what is missing and answers the names, in order. Throws MigrationError where it may not. */
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
  return remaining(await appliedIn(db), known).map((migration) => migration.name);
}

async function applyNext(tx: Statements, known: readonly Migration[]): Promise<string | null> {
  await tx.query("select pg_advisory_xact_lock($1)", [lockNumber]);
  await tx.exec(`create table if not exists schema_migration (
    name text primary key, checksum text not null, applied_at timestamptz not null default clock_timestamp()
  )`);
  const next = remaining(await appliedIn(tx), known)[0];
  if (!next) return null;
  await tx.exec(next.sql);
  await tx.query("insert into schema_migration (name, checksum) values ($1, $2)", [next.name, checksumOf(next)]);
  return next.name;
}

interface Applied {
  name: string;
  checksum: string;
}

async function appliedIn(db: Statements): Promise<Applied[]> {
  const [found] = await db.query<{ there: boolean }>("select to_regclass('schema_migration') is not null as there");
  return found?.there ? db.query<Applied>("select name, checksum from schema_migration order by name") : [];
}

function remaining(applied: Applied[], known: readonly Migration[]): Migration[] {
  for (const [index, one] of applied.entries()) {
    const ours = known[index];
    if (!ours || ours.name !== one.name) {
      throw new MigrationError(
        `the database is newer than this build of sluice: it has the migration ${one.name}, which this build does ` +
          "not know; run the build that made it, or a later one",
      );
    }
    if (checksumOf(ours) !== one.checksum) {
      throw new MigrationError(
        `the migration ${one.name} is not the one that was applied to this database; run the build that made the ` +
          "database, or a later release",
      );
    }
  }
  return known.slice(applied.length);
}
