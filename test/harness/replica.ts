// A real Postgres primary and a replica that follows it, for tests in which the replica takes over.

import { execFileSync } from "node:child_process";
import { appendFileSync, chmodSync, cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import postgres from "postgres";
import { account } from "./daemon.ts";
import { type Service, startPostgres } from "./services.ts";
import { until } from "./until.ts";

export interface Pair {
  primary: Service;
  replica: Service;
  /** The URL with the addresses of both servers: a client gets the one that takes writes. */
  url: string;
  /** Runs one statement on one of the two servers. */
  ask<Row>(server: Service, text: string): Promise<Row[]>;
  /** Cuts the replica off, so that it receives nothing more from the primary. */
  cutOff(): Promise<void>;
  /** Kills the primary without a shutdown, and promotes the replica. */
  failOver(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts a primary and its replica; both get the `settings`. */
export async function startPair(settings: readonly string[] = []): Promise<Pair> {
  const copy = join(mkdtempSync(join(tmpdir(), "sluice-test-copy-")), "data");
  const primary = await startPostgres(undefined, (data) => {
    cpSync(data, copy, { recursive: true });
    return ["wal_keep_size=64", ...settings];
  });
  const replica = await follows(copy, primary, settings);
  rmSync(dirname(copy), { recursive: true });
  const [one, other] = [new URL(primary.url), new URL(replica.url)];
  const pair: Pair = {
    primary,
    replica,
    url: `postgres://postgres@${one.host},${other.host}/postgres?target_session_attrs=read-write`,
    ask: asked,
    async cutOff() {
      await asked(replica, "alter system set primary_conninfo = ''");
      await asked(replica, "select pg_reload_conf()");
      const following = async () => (await asked(primary, "select from pg_stat_replication")).length;
      await until(async () => (await following()) === 0, 20_000, "the replica to be cut off");
    },
    async failOver() {
      await primary.stop();
      await asked(replica, "select pg_promote()");
    },
    async stop() {
      await Promise.all([primary.stop(), replica.stop()]);
    },
  };
  await until(
    async () => (await asked(primary, "select from pg_stat_replication where state = 'streaming'")).length === 1,
    20_000,
    "the replica to follow",
  );
  return pair;
}

/**
 * Starts the replica from a copy of the primary's data folder that was made before the primary's first start. So no
 * other program of Postgres than the server's own is needed.
 */
function follows(copy: string, primary: Service, settings: readonly string[]): Promise<Service> {
  return startPostgres(undefined, (data) => {
    rmSync(data, { recursive: true });
    cpSync(copy, data, { recursive: true });
    writeFileSync(join(data, "standby.signal"), "");
    const { hostname, port } = new URL(primary.url);
    const from = `host=${hostname} port=${port} user=postgres application_name=replica`;
    // The setting is in a file, because settings of the command line cannot be changed while the server runs.
    appendFileSync(join(data, "postgresql.auto.conf"), `primary_conninfo = '${from}'\n`);
    chmodSync(data, 0o700);
    if (account.uid !== undefined) execFileSync("chown", ["-R", `${account.uid}:${account.gid}`, data]);
    return settings.filter((one) => !one.startsWith("synchronous_standby_names"));
  });
}

async function asked<Row>({ url }: Service, text: string): Promise<Row[]> {
  const sql = postgres(url, { max: 1, onnotice: () => {}, connect_timeout: 10 });
  try {
    return (await sql.unsafe(text)) as unknown as Row[];
  } finally {
    await sql.end({ timeout: 1 });
  }
}
