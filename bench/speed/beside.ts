// Runs several executables at the same time: a node of each on the same Postgres and Redis, each with a database of its
// own.

import { resolve } from "node:path";
import { RedisClient } from "bun";
import postgres from "postgres";
import { startPostgres, startRedis } from "../../test/harness/services.ts";
import type { Behaviour } from "./asks.ts";
import { pool } from "./client.ts";
import { databaseBeside } from "./stores.ts";
import { startEngineProcess, startNode } from "./targets.ts";
import type { Driven } from "./warming.ts";

/** A node, with connections to its own database and to its own Redis database. */
export interface Beside extends Driven {
  sql: postgres.Sql;
  redis: RedisClient;
}

/** The IDs of the Postgres processes that serve the node's database, except for the bench's own. */
export async function sessionsOf({ sql }: Pick<Beside, "sql">): Promise<number[]> {
  const sessions = await sql<{ pid: number }[]>`select pid from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()`;
  return sessions.map(({ pid }) => pid);
}

export async function redisPidOf({ redis }: Pick<Beside, "redis">): Promise<number> {
  return Number(/process_id:(\d+)/.exec(String(await redis.send("INFO", ["server"])))?.[1]);
}

/**
 * Starts a node with every limit on for each argument such as `now=dist/sluice` (a name and an executable), on a
 * Postgres with these settings. `ending` stops all of them. Returns the nodes by name.
 */
export async function nodesBeside(
  words: readonly string[],
  behaviours: readonly Behaviour[],
  ending: AsyncDisposableStack,
  settings: readonly string[] = [],
): Promise<Map<string, Beside>> {
  const engine = await startEngineProcess();
  ending.defer(() => engine.stop());
  const [server, counters] = await Promise.all([startPostgres(undefined, () => [...settings]), startRedis()]);
  ending.defer(() => server.stop());
  ending.defer(() => counters.stop());
  const nodes = new Map<string, Beside>();
  for (const [index, word] of words.entries()) {
    const [name, path] = word.split("=", 2) as [string, string];
    const databaseUrl = await databaseBeside(server.url, `program_${index}`);
    const stores = { databaseUrl, redisUrl: `${counters.url}/${index}` };
    const plans = [{ name, plan: "on" as const }];
    const [target] = await startNode({ program: [resolve(path)], engineUrl: engine.url, behaviours, stores, plans });
    ending.defer(() => target!.stop());
    const connections = pool(target!.url);
    ending.defer(() => connections.close());
    const count = { asked: 0, answered: 0 };
    const sql = postgres(databaseUrl, { max: 1, onnotice: () => {} });
    ending.defer(() => sql.end({ timeout: 1 }));
    const redis = new RedisClient(counters.url);
    ending.defer(() => redis.close());
    nodes.set(name, { target: target!, connections, count, sql, redis });
  }
  return nodes;
}
