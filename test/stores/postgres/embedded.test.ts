// The guarantees of the embedded database: confirmed data survive a kill; only one process uses the folder; a start
// succeeds or fails, and never hangs; and the database stays small and fast however long it runs.

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { pendingMigrations } from "../../../db/migrate.ts";
import { makeSeed } from "../../../db/seed.ts";
import type { Database } from "../../../src/stores/postgres/database.ts";
import { type EmbeddedOptions, embeddedDatabase } from "../../../src/stores/postgres/embedded.ts";
import { type DatabaseThread, startDatabaseThread } from "../../../src/stores/postgres/embedded-thread.ts";
import { holdFolder } from "../../../src/stores/postgres/lock.ts";
import { seedFits } from "../../../src/stores/postgres/seed.ts";
import { until } from "../../harness/until.ts";
import { temporaryFolder } from "./databases.ts";

// Starting a database takes half a second, and many times that on a busy machine.
setDefaultTimeout(60_000);

let place: string;
beforeAll(async () => {
  place = temporaryFolder();
  await makeSeed();
});
afterAll(() => rmSync(place, { recursive: true, force: true }));

let count = 0;
const newFolder = () => join(place, `folder-${count++}`);

async function using<T>(folder: string, work: (db: Database) => Promise<T>, options?: EmbeddedOptions): Promise<T> {
  const db = await embeddedDatabase(folder, options);
  try {
    return await work(db);
  } finally {
    await db.close();
  }
}

test("a thread that was started before opens the folder", async () => {
  const started = startDatabaseThread(false);
  const asked: string[] = [];
  const open: DatabaseThread["open"] = (folder, maySeed) => {
    asked.push(folder);
    return started.open(folder, maySeed);
  };
  const folder = newFolder();
  const rows = await using(folder, (db) => db.query("select 1 as one"), { thread: { ...started, open } });
  expect([rows, asked]).toEqual([[{ one: 1 }], [folder]]);
});

test("a thread that is asked for nothing keeps no process alive", async () => {
  const module = join(import.meta.dir, "../../../src/stores/postgres/embedded-thread.ts");
  const code = `(await import(${JSON.stringify(module)})).startDatabaseThread(false)`;
  const child = Bun.spawn([process.execPath, "-e", code], { stdout: "ignore", stderr: "inherit", timeout: 50_000 });
  expect(await child.exited).toBe(0);
});

test("long statements don't hold up the event loop: timers and connections go on meanwhile", async () => {
  await using(newFolder(), async (db) => {
    let longest_ms = 0;
    let last_ms = performance.now();
    const beat = setInterval(() => {
      const now_ms = performance.now();
      longest_ms = Math.max(longest_ms, now_ms - last_ms);
      last_ms = now_ms;
    }, 5);
    const began_ms = performance.now();
    await Promise.all([
      db.query("select count(*) from generate_series(1, 500000)"),
      ...Array.from({ length: 400 }, () => db.query("select repeat($1::text, 100) as a", ["x"])),
    ]);
    const took_ms = performance.now() - began_ms;
    clearInterval(beat);
    expect(longest_ms).toBeLessThan(took_ms / 2);
  });
});

test("a transaction has the session for itself, and everybody is served in turn", async () => {
  await using(newFolder(), async (db) => {
    await db.exec("create table turn (n serial, who text)");
    const insert = (own: Pick<Database, "query">, who: string) =>
      own.query("insert into turn (who) values ($1)", [who]);
    const rolledBack = db.transaction(async (tx) => {
      await insert(tx, "rolled back");
      throw new Error("no");
    });
    const asked = [
      insert(db, "one"),
      rolledBack.catch(() => {}),
      insert(db, "two"),
      db.transaction(async (tx) => {
        await insert(tx, "three");
        await Bun.sleep(5);
        await insert(tx, "four");
      }),
      insert(db, "five"),
    ];
    await Promise.all(asked);
    const rows = await db.query<{ who: string }>("select who from turn order by n");
    expect(rows.map(({ who }) => who)).toEqual(["one", "two", "three", "four", "five"]);
  });
});

/** Starts a process that prints one line per step. It is killed at the end of the test at the latest. */
function child(mode: "write" | "open" | "spin", folder: string) {
  const process_ = Bun.spawn([process.execPath, join(import.meta.dir, "writer.ts"), mode, folder], {
    stdout: "pipe",
    stderr: "pipe",
  });
  const lines: string[] = [];
  const told = (async () => {
    const decoder = new TextDecoder();
    let rest = "";
    for await (const chunk of process_.stdout) {
      const parts = (rest + decoder.decode(chunk, { stream: true })).split("\n");
      rest = parts.pop()!;
      lines.push(...parts);
    }
  })();
  return {
    pid: process_.pid,
    lines,
    exited: process_.exited,
    errors: new Response(process_.stderr).text(),
    async until(isSo: () => boolean) {
      const deadline = performance.now() + 30_000;
      while (!isSo()) {
        if (performance.now() > deadline || process_.exitCode !== null) throw new Error("the child did not get there");
        await Bun.sleep(1);
      }
    },
    async kill() {
      process_.kill("SIGKILL");
      await process_.exited;
      await told;
    },
  };
}

describe("a folder", () => {
  test("is made at the first start, for its owner alone, and kept", async () => {
    const folder = join(newFolder(), "deep", "er");
    const made = await using(folder, async (db) => {
      expect(await pendingMigrations(db)).toEqual([]);
      await db.exec("create table mine as select 7 as n");
      return statSync(folder).mode & 0o777;
    });
    expect(made).toBe(0o700);
    expect(await using(folder, (db) => db.query("select n from mine"))).toEqual([{ n: 7 }]);
    expect(readdirSync(folder).sort()).toEqual(["database", "lock"]);
  });

  test("is left whole by a first start that was killed at any moment", async () => {
    const folder = newFolder();
    for (const wait_ms of [120, 180, 240, 300]) {
      const first = child("open", folder);
      await Bun.sleep(wait_ms);
      await first.kill();
    }
    // Creates an incomplete database folder, whatever the killed process left: it may have finished its database just
    // in time.
    mkdirSync(join(folder, "database.partial", "base"), { recursive: true });
    writeFileSync(join(folder, "database.partial", "PG_VERSION"), "1");
    expect(await using(folder, (db) => pendingMigrations(db))).toEqual([]);
    expect(existsSync(join(folder, "database.partial"))).toBeFalse();
  });

  test("that lost its version, or was made by another Postgres, is refused and left as it is", async () => {
    const folder = newFolder();
    await using(folder, async () => {});
    const version = join(folder, "database", "PG_VERSION");
    rmSync(version);
    await expect(embeddedDatabase(folder)).rejects.toThrow("PG_VERSION is missing");
    writeFileSync(version, "17\n");
    await expect(embeddedDatabase(folder)).rejects.toThrow("was made by Postgres 17");
    expect(existsSync(join(folder, "database", "base"))).toBeTrue();
  });

  test("that cannot be made says so", async () => {
    const file = newFolder();
    writeFileSync(file, "");
    await expect(embeddedDatabase(file)).rejects.toThrow("cannot be");
    await expect(embeddedDatabase(join(file, "below"))).rejects.toMatchObject({ code: "unavailable" });
  });
});

describe("one process", () => {
  test("has the folder: a second is refused with its number, and gets the folder as soon as the first is gone, however it ended", async () => {
    const folder = newFolder();
    const first = child("open", folder);
    await first.until(() => first.lines.includes("open"));
    const refused = await embeddedDatabase(folder).catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: "in_use" });
    expect(String(refused)).toContain(`process ${first.pid} (since `);
    // Simulates a note of an earlier holder of the folder: a process that has ended is not named in the error.
    const note = join(folder, "holder.json");
    const holder = JSON.parse(readFileSync(note, "utf8"));
    writeFileSync(note, JSON.stringify({ ...holder, pid: 2 ** 30 }));
    await expect(embeddedDatabase(folder)).rejects.toThrow("in use by another process;");
    await first.kill();
    await using(folder, async () => {
      await expect(embeddedDatabase(folder)).rejects.toThrow(`in use by process ${process.pid}`);
    });
    expect(existsSync(join(folder, "holder.json"))).toBeFalse();
  });

  test("wins when several start at once", async () => {
    const folder = newFolder();
    const racers = Array.from({ length: 4 }, () => child("open", folder));
    const losers = () => racers.filter((racer) => racer.lines.length === 0);
    await Promise.all(racers.map((racer) => racer.until(() => racer.lines.length > 0).catch(() => {})));
    expect(losers()).toHaveLength(3);
    for (const loser of losers()) expect(await loser.errors).toContain("is in use by ");
    await Promise.all(racers.map((racer) => racer.kill()));
  });
});

test("kill -9 loses no confirmed row, and makes none up", async () => {
  const folder = newFolder();
  let confirmed = 0;
  for (let round = 0; round < 4; round++) {
    const writer = child("write", folder);
    await writer.until(() => writer.lines.length > 0);
    const [, found, last] = writer.lines[0]!.split(" ").map(Number);
    // In addition, at most the row that was being written when the writer was killed is there unconfirmed.
    expect(found!).toBeOneOf([confirmed, confirmed + 1]);
    expect(last!).toBe(found!);
    await writer.until(() => writer.lines.length > 15 + round * 40);
    await writer.kill();
    confirmed = Number(writer.lines.at(-1));
    expect(confirmed).toBeGreaterThan(found!);
  }
  const rows = await using(folder, (db) => db.query<{ n: number }>("select n from confirmed order by n"));
  expect(rows.length).toBeOneOf([confirmed, confirmed + 1]);
  expect(rows.every(({ n }, at) => n === at + 1)).toBeTrue();
});

test("a start that hangs ends the process with a sentence and code 1", async () => {
  const spinning = child("spin", newFolder());
  expect(await spinning.exited).toBe(1);
  expect(await spinning.errors).toBe("it took too long\n");
});

describe("while it runs", () => {
  test("the log and dead rows are kept small", async () => {
    const upkeep = { every_ms: 10, log_bytes_max: 100_000, dead_rows_max: 100 };
    await using(
      newFolder(),
      async (db) => {
        await db.exec("create table busy (n int primary key, filler text) with (fillfactor = 100)");
        for (let round = 0; round < 10; round++) {
          await db.exec(
            "delete from busy; insert into busy select g, repeat('x', 200) from generate_series(1, 1000) g",
          );
        }
        await inTime(async () => {
          const [row] = await db.query<{ log: number; dead: number }>(`
            select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), redo_lsn)::int8 as log,
              (select n_dead_tup from pg_stat_user_tables where relname = 'busy') as dead
            from pg_control_checkpoint()`);
          return row!.log < 100_000 && row!.dead < 100;
        });
      },
      { upkeep },
    );
  });

  test("an index by ranges excludes what was added long after it was made", async () => {
    const upkeep = { every_ms: 10, log_bytes_max: 100_000, dead_rows_max: 100 };
    await using(
      newFolder(),
      async (db) => {
        await db.exec(`create table grown (n int, filler text);
          create index grown_by_n on grown using brin (n) with (pages_per_range = 1);
          insert into grown select g, repeat('x', 200) from generate_series(1, 10000) g`);
        const pages = async () => {
          const [row] = await db.query<{ "QUERY PLAN": [{ Plan: Record<string, number> }] }>(
            "explain (analyze, buffers, format json) select from grown where n = 9000",
          );
          const plan = row!["QUERY PLAN"][0].Plan;
          return plan["Shared Hit Blocks"]! + plan["Shared Read Blocks"]!;
        };
        await db.exec("set enable_seqscan = off");
        await inTime(async () => (await pages()) < 30);
      },
      { upkeep },
    );
  });

  test("a transaction that does nothing is rolled back, so that nobody waits for ever", async () => {
    await using(
      newFolder(),
      async (db) => {
        await db.exec("create table half (n int)");
        const stuck = db.transaction(async (tx) => {
          await tx.query("insert into half values (1)");
          // This query is outside the transaction. The embedded database has one session, so the query waits for the
          // transaction, which waits for it.
          await db.query("select 1");
        });
        await expect(stuck).rejects.toMatchObject({ code: "25P03" });
        expect(await db.query("select n from half")).toEqual([]);
      },
      { idle_transaction_ms: 100 },
    );
  });

  test("a failure of the engine itself stops everything and says what to do; nothing confirmed is lost", async () => {
    const folder = newFolder();
    const torn = "do $$ begin raise exception 'torn page' using errcode = 'XX001'; end $$";
    await using(folder, async (db) => {
      await db.exec("create table safe as select 1 as n");
      await expect(db.exec(torn)).rejects.toMatchObject({ code: "unavailable" });
      await expect(db.query("select n from safe")).rejects.toThrow("the embedded database has failed (torn page)");
      await expect(db.ping(1000)).rejects.toThrow("restart");
    }).catch(() => {});
    expect(await using(folder, (db) => db.query("select n from safe"))).toEqual([{ n: 1 }]);
  });
});

test("a folder is held though the note of its holder cannot be written", () => {
  const folder = newFolder();
  mkdirSync(folder);
  symlinkSync(join(folder, "missing", "note"), join(folder, "holder.json"));
  const hold = holdFolder(folder);
  expect(() => holdFolder(folder)).toThrow("in use by another process");
  hold.release();
  holdFolder(folder).release();
});

describe("the seed", () => {
  test("is used when the same engine made it, by the first of our migrations", () => {
    const [a, b] = ["a", "b"].map((name) => ({ name, checksum: `sum of ${name}` }));
    const ours = { engine: "pglite 1", migrations: [a!, b!] };
    expect(seedFits(ours, ours)).toBeTrue();
    expect(seedFits({ ...ours, migrations: [a!] }, ours)).toBeTrue();
    expect(seedFits({ ...ours, engine: "pglite 2" }, ours)).toBeFalse();
    expect(seedFits({ ...ours, migrations: [a!, { ...b!, checksum: "edited" }] }, ours)).toBeFalse();
    expect(seedFits(ours, { ...ours, migrations: [a!] })).toBeFalse();
  });

  test("is made anew when it is missing, cut short or stale, and else left alone", async () => {
    const path = join(place, "made", "seed.tar.gz");
    const fill = async (folder: string) => {
      mkdirSync(join(folder, "database", "empty"), { recursive: true });
      writeFileSync(join(folder, "database", "PG_VERSION"), "18\n");
    };
    expect(await makeSeed(path, fill)).toBeTrue();
    expect(await makeSeed(path, fill)).toBeFalse();
    truncateSync(path, 20);
    expect(await makeSeed(path, fill)).toBeTrue();
    await Bun.write(path, new Bun.Archive({ "seed.json": '{"engine":"another","migrations":[]}' }));
    expect(await makeSeed(path, fill)).toBeTrue();
    expect(readdirSync(join(place, "made"))).toEqual(["seed.tar.gz"]);
  });
});

function inTime(holds: () => boolean | Promise<boolean>): Promise<void> {
  return until(holds, 10_000);
}
