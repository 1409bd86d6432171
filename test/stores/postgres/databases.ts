// Opens a database of either kind for one test, so that the same tests run on both kinds.

import { afterAll, beforeAll } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { migrate } from "../../../db/migrate.ts";
import { makeSeed } from "../../../db/seed.ts";
import type { Database } from "../../../src/stores/postgres/database.ts";
import { embeddedDatabase } from "../../../src/stores/postgres/embedded.ts";
import { serverDatabase } from "../../../src/stores/postgres/server.ts";
import { databaseKinds } from "../../harness/depth.ts";
import { migratedDatabase } from "../../harness/migrated-database.ts";
import { freshDatabase } from "../../harness/services.ts";
import { until } from "../../harness/until.ts";

export interface Owned {
  db: Database;
  /** Closes the database and deletes it. */
  drop(): Promise<void>;
}

export type Open = (options?: { migrated?: boolean }) => Promise<Owned>;

export const kinds: { kind: Database["kind"]; open: Open }[] = [
  {
    kind: "pglite",
    async open({ migrated = true } = {}) {
      await makeSeed();
      const folder = temporaryFolder();
      const db = await embeddedDatabase(folder);
      if (migrated) await migrate(db);
      else await emptied(db);
      return { db, drop: () => db.close().finally(() => rmSync(folder, { recursive: true, force: true })) };
    },
  },
  {
    kind: "postgres",
    async open({ migrated = true } = {}) {
      const { url, drop } = await (migrated ? migratedDatabase() : freshDatabase());
      const db = await serverDatabase(url);
      return { db, drop: () => db.close().finally(drop) };
    },
  },
];

/** The kinds of database on which a test file is run in this run of the tests. */
export const kindsFor = (file: string) => kinds.filter(({ kind }) => databaseKinds(file).includes(kind));

/**
 * Opens the database of tests that do not depend on its kind. It is Postgres, which opens with a twentieth of the CPU
 * time of an embedded database.
 */
export const openDatabase: Open = kinds[1]!.open;

/**
 * A database for a group of tests, of this kind or as `open` opens it. It is opened before the tests and dropped after
 * them; the returned object has no members before the first test.
 */
export function databaseForTests(open: Database["kind"] | Open, options?: Parameters<Open>[0]): Database {
  const db = {} as Database;
  let owned: Owned | undefined;
  beforeAll(async () => {
    owned = await (typeof open === "string" ? kinds.find(({ kind }) => kind === open)!.open : open)(options);
    Object.assign(db, owned.db);
  });
  afterAll(() => owned?.drop());
  return db;
}

export function temporaryFolder(): string {
  return mkdtempSync(join(tmpdir(), "sluice-test-database-"));
}

/**
 * Removes all tables from a database, for tests of the migrator, because a new embedded database is a copy of a
 * migrated one.
 */
export async function emptied(db: Database): Promise<void> {
  await db.exec("drop schema public cascade; create schema public");
}

const withClocks = new WeakSet<object>();

/** Sets the store's clock to a fixed time; null makes it the true time again. Upkeep accepts any jump of this clock. */
export async function setClock(db: Pick<Database, "exec" | "query">, at: Date | null): Promise<void> {
  if (!withClocks.has(db)) {
    await db.exec(`
      create table if not exists test_clock (at timestamptz);
      create or replace function store_now() returns timestamptz language sql volatile set enable_seqscan = on
        as $$ select coalesce((select at from test_clock), date_trunc('milliseconds', clock_timestamp())) $$`);
    withClocks.add(db);
  }
  // Sets the clock in one statement: between two statements, any other query would see the true time.
  const set = `with was as (delete from test_clock), upkept as (update usage_audit set upkept_at = 'infinity', upkept_by = null)
    insert into test_clock select $1::timestamptz where $1 is not null`;
  await db.query(set, [at]);
}

/** Runs `work` while the store's clock is fixed at `instant`. */
export async function withClock<T>(db: Database, instant: Date, work: () => Promise<T>): Promise<T> {
  await setClock(db, instant);
  try {
    return await work();
  } finally {
    await setClock(db, null);
  }
}

/**
 * Waits until a session of this Postgres database waits for a lock. With `words`, only sessions count whose query
 * contains this text.
 */
export function lockAwaited(db: Database, words = ""): Promise<void> {
  const waits = `select 1 from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock' and position($1 in query) > 0`;
  return until(
    async () => (await db.query(waits, [words])).length > 0,
    20_000,
    `a session to wait for a lock ${words}`,
  );
}
