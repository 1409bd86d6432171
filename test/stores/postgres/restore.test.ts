// Restores a backup of either kind of database: the node starts on it, keys work, every total equals the sum of its
// records, and new requests are counted.

import { expect, setDefaultTimeout, test } from "bun:test";
import { execFile } from "node:child_process";
import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { postgresProgram } from "../../harness/binaries.ts";
import { endedAfterEach } from "../../harness/endings.ts";
import { lineOf } from "../../harness/log-lines.ts";
import { migratedDatabase } from "../../harness/migrated-database.ts";
import { redisUrl, startPostgres } from "../../harness/services.ts";
import { type Sluice, type SluiceOptions, startSluice } from "../../harness/sluice.ts";
import { temporaryFolder } from "./databases.ts";
import { endOf, served } from "./served.ts";

setDefaultTimeout(240_000);

const ending = endedAfterEach();

async function node(options: SluiceOptions): Promise<Sluice> {
  const sluice = await startSluice({ store: "pglite", ...options });
  ending.push(() => sluice.stop().catch(() => {}));
  return sluice;
}

interface Shown {
  windows: { month: { used_nanos: number } };
}

/**
 * Checks a node on a restored database: it has the data of the backup, every total equals the sum of its records, and
 * new requests are counted on top of them.
 */
async function goesOn(restored: Sluice, key: string, ids: string[], organization: string): Promise<void> {
  for (const id of ids) expect(await endOf(restored, id, key)).not.toBeNull();
  const before = JSON.stringify(await restored.json<Shown>("usage", "show", organization));
  await served(restored, key);
  expect(JSON.stringify(await restored.json<Shown>("usage", "show", organization))).not.toBe(before);
  for (const how of [[], ["--full"]]) {
    const { code, stdout } = await restored.cli("usage", "check", ...how);
    expect(`${code} ${stdout}`).toStartWith("0 Every total equals the sum of its records.");
  }
}

async function runs(name: string, ...words: string[]): Promise<void> {
  const { file, env } = await postgresProgram(name);
  await promisify(execFile)(file, words, { env, timeout: 120_000 });
}

test("a dump of Postgres, restored on another server", async () => {
  const fresh = await migratedDatabase();
  ending.push(fresh.drop);
  const env = { REDIS_URL: await redisUrl() };
  const before = await node({ env: { ...env, DATABASE_URL: fresh.url } });
  const { key } = before;
  const ids = [await served(before, key), await served(before, key)];
  const file = join(temporaryFolder(), "sluice.dump");
  await runs("pg_dump", "--format=custom", `--file=${file}`, fresh.url);
  const late = await served(before, key);
  // The node writes its latest receipts to Redis within a second, and at the latest when it stops.
  await before.stop();

  const other = await startPostgres();
  ending.push(other.stop);
  await runs("pg_restore", "--no-owner", `--dbname=${other.url}`, file);
  const restored = await node({ env: { ...env, DATABASE_URL: other.url }, dataDir: before.dataDir });
  await goesOn(restored, key, ids, "test");
  // The requests after the backup are lost, and the node reports that.
  expect((await lineOf(restored, { event: "receipts_lost" })).requests).toContain(late);
  await lineOf(restored, { event: "database_moved" });
  rmSync(file, { force: true });
});

test("a copy of an embedded database's folder", async () => {
  const folder = temporaryFolder();
  ending.push(() => rmSync(folder, { recursive: true, force: true }));
  const before = await node({ dataDir: join(folder, "data") });
  const { key } = before;
  const ids = [await served(before, key), await served(before, key)];
  const [{ slug }] = (await before.json<{ slug: string }[]>("org", "list")) as [{ slug: string }];
  await before.stop();
  cpSync(join(folder, "data"), join(folder, "copy"), { recursive: true });

  const restored = await node({ dataDir: join(folder, "copy") });
  await goesOn(restored, key, ids, slug);
});
