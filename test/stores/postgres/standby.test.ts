// A standby that serves reads, beside its primary: connections for writes are made to the primary, and are closed if a
// host name has led them to a standby.

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { connect, createServer, type Socket } from "node:net";
import { migrate } from "../../../db/migrate.ts";
import { serverDatabase } from "../../../src/stores/postgres/server.ts";
import { freePort } from "../../harness/daemon.ts";
import { endedAfterEach } from "../../harness/endings.ts";
import { type Pair, startPair } from "../../harness/replica.ts";
import { type Service, startPostgres } from "../../harness/services.ts";
import { type Sluice, startSluice } from "../../harness/sluice.ts";
import { until } from "../../harness/until.ts";
import { chat } from "./served.ts";

setDefaultTimeout(240_000);

let pair: Pair;
beforeAll(async () => {
  pair = await startPair();
});
afterAll(() => pair.stop());

const running = endedAfterEach();

async function nodeOn(url: string, env: Record<string, string> = {}): Promise<Sluice> {
  const sluice = await startSluice({ store: "pglite", env: { DATABASE_URL: url, ...env } });
  running.push(() => sluice.stop().catch(() => {}));
  return sluice;
}

/** A database URL with several servers, in this order. */
const urlOf = (servers: Service[], kind: string, database = "postgres") =>
  `postgres://postgres@${servers.map(({ url }) => new URL(url).host).join()}/${database}?target_session_attrs=${kind}`;

let made = 0;
/** Creates a database with Sluice's schema, waits until both servers have it, and returns its name. */
async function database(): Promise<string> {
  made += 1;
  const name = `made_${made}`;
  await pair.ask(pair.primary, `create database ${name}`);
  const db = await serverDatabase(urlOf([pair.primary], "primary", name));
  await migrate(db);
  await db.close();
  const [end] = await pair.ask<{ lsn: string }>(pair.primary, "select pg_current_wal_lsn() as lsn");
  const behind = `select from pg_last_wal_replay_lsn() as at where at < '${end!.lsn}'`;
  await until(async () => (await pair.ask(pair.replica, behind)).length === 0, 20_000, "the replica to have it");
  return name;
}

for (const [kind, isStandby] of Object.entries({
  "read-write": false,
  primary: false,
  "read-only": true,
  standby: true,
  "prefer-standby": true,
})) {
  test(`of several servers one that is ${kind} is taken, also where the other one stands first`, async () => {
    for (const servers of [
      [pair.primary, pair.replica],
      [pair.replica, pair.primary],
    ]) {
      const db = await serverDatabase(urlOf(servers, kind));
      expect(await db.query("select pg_is_in_recovery() as is_standby")).toEqual([{ is_standby: isStandby }]);
      await db.close();
    }
  });
}

test("a node serves on the primary, though a standby that answers stands first", async () => {
  const sluice = await nodeOn(urlOf([pair.replica, pair.primary], "read-write", await database()));
  expect((await chat(sluice)).status).toBe(200);
});

test("a node whose name led to a standby for a moment is ready by itself once the name leads to the primary", async () => {
  const name = await nameOf(pair.primary, await database());
  const sluice = await nodeOn(name.url);
  expect((await chat(sluice)).status).toBe(200);
  const readiness = async () => (await sluice.fetch("/readyz?verbose", { key: null })).text();

  name.leadTo(pair.replica);
  name.cut();
  await until(async () => (await readiness()).includes("the database is read-only"), 20_000, "the standby to be met");
  name.leadTo(pair.primary);
  await until(
    async () => (await sluice.fetch("/readyz", { key: null })).status === 200,
    10_000,
    "the node to be ready",
  );
  await until(async () => (await chat(sluice)).status === 200, 10_000, "requests to be served");
});

test("each connection that was made to a standby leaves it: the pool's, a lane, and the one that listens", async () => {
  const name = await nameOf(pair.replica);
  const db = await serverDatabase(name.url, { connections_max: 2 });
  running.push(() => db.close());
  const lane = await db.lane();
  const heard: string[] = [];
  const refused = { code: "25006" };
  const write = "create table if not exists standby_left (n int)";
  const isWritten = (by: Pick<typeof db, "query">) =>
    by.query(write).then(
      () => true,
      () => false,
    );
  await expect(db.query(write)).rejects.toMatchObject(refused);
  await expect(db.transaction((tx) => tx.query(write))).rejects.toMatchObject(refused);
  await expect(lane.query(write)).rejects.toMatchObject(refused);
  await expect(db.listen("key_changed", () => {})).rejects.toMatchObject(refused);

  name.leadTo(pair.primary);
  await until(() => isWritten(db), 20_000, "the pool to leave");
  await until(() => isWritten(lane), 20_000, "the lane to leave");
  const hears = () =>
    db
      .listen("key_changed", (payload) => heard.push(payload))
      .then(
        () => true,
        () => false,
      );
  await until(hears, 20_000, "the listener to leave");
  await db.notify("key_changed", "key_1");
  await until(() => heard.includes("key_1"), 10_000, "the message");
});

test("a write that a standby refuses leads to the next server, and fails no statement beside it", async () => {
  const db = await serverDatabase(urlOf([pair.replica, pair.primary], "any"), { connections_max: 1 });
  running.push(() => db.close());
  const write = "create table if not exists standby_passed (n int)";
  const beside = Promise.allSettled([db.query(write), db.query("select 1 as one")]);
  expect(await beside).toMatchObject([
    { status: "rejected", reason: { code: "25006" } },
    { status: "fulfilled", value: [{ one: 1 }] },
  ]);
  expect(await db.query(write)).toEqual([]);
});

test("a database that stays read-only is not dialled anew for each write", async () => {
  const db = await serverDatabase(urlOf([pair.replica], "any"), { connections_max: 1 });
  running.push(() => db.close());
  let opened = 0;
  db.watch!({ answered: () => {}, lost: () => {}, opened: () => (opened += 1) });
  for (let write = 0; write < 50; write++)
    await expect(db.query("create table standby_stays (n int)")).rejects.toMatchObject({ code: "25006" });
  expect(opened).toBeLessThan(3);
});

test("a node passes a former primary that was fenced by a setting, and stands first", async () => {
  const name = await database();
  const fence = async (setting: string) => {
    await pair.ask(pair.primary, `alter system ${setting}`);
    await pair.ask(pair.primary, "select pg_reload_conf()");
  };
  const present = await startPostgres();
  try {
    await pair.ask(present, `create database ${name}`);
    await fence("set default_transaction_read_only = on");
    const sluice = await nodeOn(urlOf([pair.primary, present], "read-write", name));
    expect((await chat(sluice)).status).toBe(200);
    await sluice.stop();
  } finally {
    await fence("reset default_transaction_read_only");
    await present.stop();
  }
});

test("a node that starts where its name leads to a standby waits for the primary", async () => {
  const name = await nameOf(pair.replica, await database());
  const PORT = String(await freePort());
  const starts = nodeOn(name.url, { PORT });
  const meets = async () =>
    (await (await fetch(`http://127.0.0.1:${PORT}/readyz?verbose`)).text()).includes("the database is read-only");
  const waits = until(() => meets().catch(() => false), 20_000, "the node to wait");
  await Promise.race([waits, starts]);
  name.leadTo(pair.primary);
  expect((await chat(await starts)).status).toBe(200);
});

/**
 * A proxy to one of two servers, like a host name or a load balancer: new connections can be directed to the other
 * server.
 */
async function nameOf(server: Service, database = "postgres") {
  let target = new URL(server.url);
  const open = new Set<Socket>();
  const listening = createServer((client) => {
    const upstream = connect(Number(target.port), target.hostname);
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      open.add(from);
      from.pipe(to);
      from.on("error", () => {});
      from.on("close", () => {
        open.delete(from);
        to.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => listening.listen(0, "127.0.0.1", resolve));
  const cut = () => {
    for (const socket of open) socket.destroy();
  };
  running.push(async () => {
    listening.close();
    cut();
  });
  const { port } = listening.address() as { port: number };
  return {
    url: `postgres://postgres@127.0.0.1:${port}/${database}`,
    leadTo(other: Service) {
      target = new URL(other.url);
    },
    /** Ends all connections. */
    cut,
  };
}
