// Executables beside each other: a node of each on the same Postgres and Redis, in a database of its own.

import { resolve } from "node:path";
import { startPostgres, startRedis } from "../../test/harness/services.ts";
import type { Behaviour } from "./asks.ts";
import { pool } from "./client.ts";
import { databaseBeside } from "./stores.ts";
import { startEngineProcess, startNode } from "./targets.ts";
import type { Driven } from "./warming.ts";

export interface Beside extends Driven {
  databaseUrl: string;
  /** The server's, without the number of a database. */
  redisUrl: string;
}

/**
 * Nodes by name, with every limit on, for words such as `now=dist/sluice`, on a Postgres with these settings. All of it
 * ends with `ending`.
 */
export async function nodesBeside(
  words: readonly string[],
  behaviours: readonly Behaviour[],
  ending: AsyncDisposableStack,
  settings: readonly string[] = [],
): Promise<Map<string, Beside>> {
  const engine = await startEngineProcess();
  ending.defer(() => engine.stop());
  const [postgres, redis] = await Promise.all([startPostgres(undefined, () => [...settings]), startRedis()]);
  ending.defer(() => postgres.stop());
  ending.defer(() => redis.stop());
  const nodes = new Map<string, Beside>();
  for (const [index, word] of words.entries()) {
    const [name, path] = word.split("=", 2) as [string, string];
    const databaseUrl = await databaseBeside(postgres.url, `program_${index}`);
    const stores = { databaseUrl, redisUrl: `${redis.url}/${index}` };
    const plans = [{ name, plan: "on" as const }];
    const [target] = await startNode({ program: [resolve(path)], engineUrl: engine.url, behaviours, stores, plans });
    ending.defer(() => target!.stop());
    const connections = pool(target!.url);
    ending.defer(() => connections.close());
    const count = { asked: 0, answered: 0 };
    nodes.set(name, { target: target!, connections, count, databaseUrl, redisUrl: redis.url });
  }
  return nodes;
}
