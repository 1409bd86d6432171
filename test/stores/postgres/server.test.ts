// A Postgres server that shuts down, comes back, becomes unresponsive or is slow: waiting queries fail soon, and later
// queries work without a restart of the node.

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, spyOn, test } from "bun:test";
import { connect, createServer, type Socket } from "node:net";
import type { Database } from "../../../src/stores/postgres/database.ts";
import { revocations } from "../../../src/stores/postgres/revocations.ts";
import { type ServerOptions, serverDatabase } from "../../../src/stores/postgres/server.ts";
import { busyness } from "../../harness/busyness.ts";
import { freePort } from "../../harness/daemon.ts";
import { freshDatabase, startPostgres } from "../../harness/services.ts";
import { until } from "../../harness/until.ts";

setDefaultTimeout(60_000);

let fresh: { url: string; drop(): Promise<void> };
beforeAll(async () => {
  fresh = await freshDatabase();
});
afterAll(() => fresh.drop());

async function using<T>(url: string, options: ServerOptions, work: (db: Database) => Promise<T>): Promise<T> {
  const db = await serverDatabase(url, { close_ms: 200, ...options });
  try {
    return await work(db);
  } finally {
    await db.close();
  }
}

const answers = (db: Database) =>
  db.query("select 1").then(
    () => true,
    () => false,
  );

describe("a server that is not there", () => {
  test("a statement that is run once is not kept by its connection, and others are", () =>
    using(fresh.url, { connections_max: 1 }, async (db) => {
      const kept = async () =>
        (await db.query<{ n: number }>("select count(*)::int as n from pg_prepared_statements"))[0]!.n;
      const before = [await kept(), await kept()].at(-1)!;
      for (let at = 0; at < 5; at++) await db.queryOnce(`select $1::int + ${at} as n`, [at]);
      expect(await kept()).toBe(before);
      expect(await db.queryOnce<{ n: number }>("select $1::int as n", [7])).toEqual([{ n: 7 }]);
      await db.query("select $1::int + 9 as n", [1]);
      expect(await kept()).toBe(before + 1);
    }));

  test("is named in the error, with its port and database, without the password", async () => {
    const port = await freePort();
    const url = `postgres://ann:hunter2@127.0.0.1:${port}/books`;
    const error = await serverDatabase(url, { connect_ms: 1000 }).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ name: "DatabaseError", code: "unavailable" });
    expect(String(error)).toContain(`127.0.0.1:${port}/books`);
    expect(Bun.inspect(error)).not.toContain("hunter2");
  });

  test("or has no such database: the server's own words and code", async () => {
    const url = new URL(fresh.url);
    url.pathname = "/nowhere";
    await expect(serverDatabase(url.href)).rejects.toMatchObject({ code: "3D000" });
  });

  test("or accepts and says nothing: a start ends within its time", async () => {
    const mute = createServer(() => {});
    await new Promise<void>((resolve) => mute.listen(0, "127.0.0.1", resolve));
    const { port } = mute.address() as { port: number };
    const started = performance.now();
    await expect(serverDatabase(`postgres://ann@127.0.0.1:${port}/d`, { connect_ms: 300 })).rejects.toMatchObject({
      name: "DatabaseError",
    });
    expect(performance.now() - started).toBeLessThan(5_000 * busyness());
    mute.close();
  });
});

test("of several hosts the first that takes a connection serves", async () => {
  const url = new URL(fresh.url);
  const places = [`127.0.0.1:${await freePort()}`, `${url.hostname}:${url.port || 5432}`];
  const urlOf = (several: string[]) => fresh.url.replace(url.host, several.join());
  await using(urlOf(places), { connect_ms: 2_000 }, async (db) => expect(await answers(db)).toBeTrue());
  const error = await serverDatabase(urlOf([places[0]!, places[0]!]), { connect_ms: 2_000 }).catch((thrown) => thrown);
  expect(error).toMatchObject({ name: "DatabaseError", code: "unavailable" });
  expect(String(error)).toContain("ECONNREFUSED");
});

test("a statement that takes too long is ended by the server, a forgotten transaction too", async () => {
  await using(fresh.url, { statement_ms: 100, idle_transaction_ms: 100 }, async (db) => {
    await expect(db.query("select pg_sleep(30)")).rejects.toMatchObject({ code: "57014" });
    const forgotten = db.transaction(async (tx) => {
      await tx.query("select 1");
      await Bun.sleep(400);
      await tx.query("select 1");
    });
    await expect(forgotten).rejects.toMatchObject({ name: "DatabaseError" });
    expect(await answers(db)).toBeTrue();
  });
});

test("reports, however many, leave a connection for what requests ask, and run one after another", async () => {
  await using(fresh.url, { connections_max: 2, statement_ms: 2_000 }, async (db) => {
    const gate = Promise.withResolvers<void>();
    const report = (wait_ms: number) =>
      db.transaction(
        async (tx) => {
          await tx.query("select 1");
          await gate.promise;
          return "read";
        },
        { statement_ms: wait_ms },
      );
    const reports = Promise.all(Array.from({ length: 4 }, () => report(60_000)));
    expect(await db.query("select 1 as one")).toEqual([{ one: 1 }]);
    expect(await db.transaction((tx) => tx.query("select 1 as one"))).toEqual([{ one: 1 }]);
    await expect(report(50)).rejects.toMatchObject({ name: "DatabaseError", code: "silent" });
    gate.resolve();
    expect(await reports).toEqual(["read", "read", "read", "read"]);
    expect(await report(60_000)).toBe("read");
  });
});

test("statements are run and never compiled, in every session; an address may say otherwise", async () => {
  const compiles = async (db: Pick<Database, "query">) => (await db.query<{ jit: string }>("show jit"))[0]!.jit;
  await using(fresh.url, {}, async (db) => {
    const lane = await db.lane();
    expect([await compiles(db), await compiles(lane)]).toEqual(["off", "off"]);
    await lane.close();
  });
  await using(`${fresh.url}?jit=on`, {}, async (db) => expect(await compiles(db)).toBe("on"));
});

test("notices of the server are not printed", async () => {
  const log = spyOn(console, "log");
  await using(fresh.url, {}, (db) => db.exec("do $$ begin raise notice 'hear, hear'; end $$"));
  expect(log).not.toHaveBeenCalled();
  log.mockRestore();
});

test("a server that has room for no more connections costs no statement: those that are open serve", async () => {
  const url = new URL(fresh.url);
  Object.assign(url, { username: `crowded_${process.pid}`, password: "crowded" });
  await using(fresh.url, {}, async (db) => {
    await db.exec(`create role ${url.username} login password '${url.password}' connection limit 2`);
    await using(url.href, { connections_max: 6 }, async (crowded) => {
      const slow = "select pg_sleep(0.02)";
      for (let round = 0; round < 3; round++) {
        const asked = Array.from({ length: 12 }, (_, at) =>
          at % 3 === 0 ? crowded.transaction((tx) => tx.query(slow)) : crowded.query(slow),
        );
        expect((await Promise.allSettled(asked)).map(({ status }) => status)).toEqual(asked.map(() => "fulfilled"));
      }
    });
    await inTime(() =>
      db.exec(`drop role ${url.username}`).then(
        () => true,
        () => false,
      ),
    );
  });
});

test("a server that lets the role in no more costs no statement while connections are open, and then says why", async () => {
  const url = new URL(fresh.url);
  Object.assign(url, { username: `barred_${process.pid}`, password: "barred" });
  await using(fresh.url, {}, async (db) => {
    await db.exec(`create role ${url.username} login password '${url.password}'`);
    await using(url.href, { connections_max: 6 }, async (barred) => {
      await db.exec(`alter role ${url.username} nologin`);
      const asked = Array.from({ length: 12 }, (_, at) =>
        at % 3 === 0 ? barred.transaction((tx) => tx.query("select 1")) : barred.query("select pg_sleep(0.02)"),
      );
      expect((await Promise.allSettled(asked)).map(({ status }) => status)).toEqual(asked.map(() => "fulfilled"));
      await db.query("select pg_terminate_backend(pid) from pg_stat_activity where usename = $1", [url.username]);
      await inTime(() =>
        barred.query("select 1").then(
          () => false,
          (error) => error.code === "28000",
        ),
      );
    });
    await db.exec(`drop role ${url.username}`);
  });
});

test("lost connections are replaced, and listeners are informed that they may have missed something", async () => {
  await using(fresh.url, { connections_max: 2 }, async (db) => {
    const heard: string[] = [];
    let missed = 0;
    const stop = await revocations(db, { changed: (id) => heard.push(id), missed: () => missed++ });
    expect(missed).toBe(0);
    await using(fresh.url, {}, (other) =>
      other.exec(
        "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()",
      ),
    );
    await inTime(() => missed === 1);
    await inTime(() => answers(db));
    await db.notify("key_changed", "key_1");
    await inTime(() => heard.includes("key_1"));
    await stop();
  });
});

test("a transaction whose connection is lost fails, and nothing that its work still asks reaches another session", async () => {
  await using(fresh.url, { connections_max: 1 }, async (db) => {
    await db.exec("create table outlived (n int)");
    let asked: unknown[] = [];
    const lost = db.transaction(async (tx) => {
      const [own] = await tx.query<{ pid: number }>("select pg_backend_pid() as pid");
      await using(fresh.url, {}, (other) => other.query("select pg_terminate_backend($1)", [own!.pid]));
      const write = () => tx.query("insert into outlived values (1)").catch((error: unknown) => error);
      // The first write finds the connection closed, the second write follows immediately, and the last one comes when
      // connections have been reopened.
      asked = [await write(), await write()];
      await inTime(() => answers(db));
      asked.push(await write());
    });
    await expect(lost).rejects.toMatchObject({ name: "DatabaseError" });
    expect(asked).toMatchObject([1, 2, 3].map(() => ({ name: "DatabaseError" })));
    expect(await db.query("select n from outlived")).toEqual([]);
  });
});

test("a server that restarts is found again, by queries, lanes and listeners", async () => {
  const port = await freePort();
  let service = await startPostgres(port);
  try {
    await using(service.url, { connect_ms: 1000 }, async (db) => {
      const lane = await db.lane();
      await lane.query("select 1");
      const heard: string[] = [];
      const stop = await db.listen("key_changed", (id) => heard.push(id));
      await service.stop();
      for (let attempt = 0; attempt < 3; attempt++) {
        const failed = await db.query("select 1").catch((error: unknown) => error);
        expect(failed).toMatchObject({ name: "DatabaseError" });
      }
      await expect(db.ping(2000)).rejects.toMatchObject({ name: "DatabaseError" });
      service = await startPostgres(port);
      const back = performance.now();
      await inTime(() => answers(db));
      expect(performance.now() - back).toBeLessThan(5_000 * busyness());
      await inTime(() =>
        lane.query("select 1").then(
          () => true,
          () => false,
        ),
      );
      await inTime(async () => {
        await db.notify("key_changed", "key_2").catch(() => {});
        return heard.includes("key_2");
      });
      await stop();
    });
  } finally {
    await service.stop();
  }
});

test("a server that falls silent fails what waits for it, and new connections are tried", async () => {
  const wire = await silenceable(fresh.url);
  await using(wire.url, { statement_ms: 200 }, async (db) => {
    await db.query("select 1");
    wire.silence();
    const started = performance.now();
    await expect(db.query("select 2")).rejects.toMatchObject({ code: "silent" });
    expect(performance.now() - started).toBeLessThan(3_000 * busyness());
    expect(await db.query<{ n: number }>("select 3 as n")).toEqual([{ n: 3 }]);
    await expect(db.ping(1000)).resolves.toBeUndefined();
  });
  wire.close();
});

/** Creates a proxy to the server that can be silenced: on the connections that are open then, no more data arrive. */
async function silenceable(target: string) {
  const { hostname, port } = new URL(target);
  const open = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(Number(port || 5432), hostname);
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      open.add(from);
      from.on("data", (data) => to.write(data));
      from.on("error", () => {});
      from.on("close", () => to.destroy());
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const silenced: Socket[] = [];
  const url = new URL(target);
  url.hostname = "127.0.0.1";
  url.port = String((server.address() as { port: number }).port);
  return {
    url: url.href,
    silence() {
      for (const socket of open) socket.removeAllListeners("data").on("data", () => {});
      silenced.push(...open);
      open.clear();
    },
    close() {
      server.close();
      for (const socket of [...open, ...silenced]) socket.destroy();
    },
  };
}

function inTime(holds: () => boolean | Promise<boolean>): Promise<void> {
  return until(holds, 20_000);
}
