// The bench's own Postgres and Redis: their process IDs and versions, and queries of the requests' records.

import { readFileSync } from "node:fs";
import { RedisClient } from "bun";
import postgres from "postgres";

/** Settings for a Postgres that waits for its disk. */
export const onDisk = ["fsync=on", "synchronous_commit=on", "full_page_writes=on"];

export interface Stores {
  postgresPid: number;
  redisPid: number;
  versions: { postgres: string; redis: string };
}

export async function storesOf(databaseUrl: string, redisUrl: string): Promise<Stores> {
  const [row] = await asked<{ pid: number; version: string }>(
    databaseUrl,
    "select pg_backend_pid() as pid, current_setting('server_version') as version",
    // The parent of each backend process is the Postgres server.
    ({ pid }) => parentOf(pid),
  );
  const redis = new RedisClient(redisUrl);
  const info = String(await redis.send("INFO", ["server"]));
  redis.close();
  const said = (name: string) => new RegExp(`^${name}:(\\S+)`, "m").exec(info)?.[1] ?? "";
  return {
    ...{ postgresPid: row!.found, redisPid: Number(said("process_id")) },
    versions: { postgres: row!.version, redis: said("redis_version") },
  };
}

/** Creates another database on the same server, and returns its URL. */
export async function databaseBeside(databaseUrl: string, name: string): Promise<string> {
  await asked(databaseUrl, `create database ${name}`, () => 0);
  const url = new URL(databaseUrl);
  url.pathname = `/${name}`;
  return url.href;
}

/** The number of requests that have a record. */
export async function recordsOf(databaseUrl: string): Promise<number> {
  const [row] = await asked<{ count: number }>(databaseUrl, "select count(*)::int as count from usage_record", () => 0);
  return row!.count;
}

/** The number of requests whose caller left after their first token, and of the output tokens that they are charged. */
export async function leftOf(databaseUrl: string): Promise<{ streams: number; tokens: number }> {
  const text = `
    select count(*)::int as streams, coalesce(sum(output_tokens), 0)::int as tokens
    from usage_record where outcome = 'cancelled' and output_tokens > 0`;
  const [row] = await asked<{ streams: number; tokens: number }>(databaseUrl, text, () => 0);
  return { streams: row!.streams, tokens: row!.tokens };
}

/** Runs a query. `look` is called with each row while the connection is still open. */
async function asked<Row extends object>(url: string, text: string, look: (row: Row) => number) {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    const rows = (await sql.unsafe(text)) as unknown as Row[];
    return rows.map((row) => ({ ...row, found: look(row) }));
  } finally {
    await sql.end({ timeout: 1 });
  }
}

function parentOf(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)!.split(" ")[1]);
}
