// Starts a node with several workers over real sockets, Postgres and Redis, with helpers that tests of other nodes do
// not need.

import { readFileSync, writeFileSync } from "node:fs";
import postgres from "postgres";
import { startService } from "../../harness/engine.ts";
import { type Logging, lineOf, linesOf } from "../../harness/log-lines.ts";
import { migratedDatabase } from "../../harness/migrated-database.ts";
import { redisUrl } from "../../harness/services.ts";
import { type Sluice, startSluice } from "../../harness/sluice.ts";

export interface WorkersNode extends Sluice {
  /** The process ID of each running worker. The key is the worker's number. */
  pids(): Map<number, number>;
  /** The number of ledger records of each of these requests. */
  records(requestIds: readonly string[]): Promise<number[]>;
}

type Options = Parameters<typeof startService>[0] & {
  workers?: string;
  env?: Record<string, string>;
  ca?: string;
  /** The path of a file in which the node finds the database's URL. */
  addressFile?: string;
};

/** Starts a node with several workers, in front of an engine of its own unless SLUICE_CONFIG says otherwise. */
export async function startWorkers(all: Options = {}): Promise<WorkersNode> {
  const { workers = "2", env = {}, ca, addressFile, ...options } = all;
  const database = await migratedDatabase();
  if (addressFile) writeFileSync(addressFile, database.url);
  const address: Record<string, string> = addressFile
    ? { DATABASE_URL_FILE: addressFile }
    : { DATABASE_URL: database.url };
  const settings = { SLUICE_WORKERS: workers, ...address, REDIS_URL: await redisUrl(), ...env };
  const sluice = { store: "pglite", env: settings, ...(ca ? { ca } : {}) } as const;
  const starting = env.SLUICE_CONFIG ? startSluice(sluice) : startService({ ...options, sluice });
  const service: Sluice = await starting.catch(async (failure) => {
    await database.drop();
    throw failure;
  });
  return {
    ...service,
    pids: () => workersOf(service.pid),
    async records(requestIds) {
      const sql = postgres(database.url, { max: 1, onnotice: () => {} });
      const bare = requestIds.map((id) => id.replace("req_", ""));
      const rows = await sql<{ id: string; records: number }[]>`
        select replace(request_id::text, '-', '') as id, count(*)::int as records from usage_record
        where replace(request_id::text, '-', '') = any(${bare}) group by 1`;
      await sql.end();
      return bare.map((id) => rows.find((row) => row.id === id)?.records ?? 0);
    },
    async stop() {
      try {
        return await service.stop();
      } finally {
        await database.drop();
      }
    },
  };
}

/** The process IDs of the supervisor's children by worker number, which is the last argument of their command lines. */
export function workersOf(pid: number): Map<number, number> {
  const children = read(`/proc/${pid}/task/${pid}/children`).trim().split(" ").filter(Boolean).map(Number);
  const numbered = children.map((child) => [Number(read(`/proc/${child}/cmdline`).split("\0").at(-2)), child] as const);
  return new Map(numbered.filter(([number]) => number > 0).sort());
}

/** The text of a file in /proc; empty if its process has ended, perhaps just now. */
function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

export function isGone(pid: number): boolean {
  const status = read(`/proc/${pid}/status`);
  return status === "" || /^State:\s+Z/m.test(status);
}

/** The number of log lines of this event. */
export const said = (service: Logging, event: string) => linesOf(service, event).length;

/** The number of the worker whose log line names this request. */
export async function workerOf(service: Logging, requestId: string): Promise<number> {
  return (await lineOf(service, { request_id: requestId })).worker;
}

/** Options that send a request on a new connection, which may reach any worker. */
export const own = { headers: { connection: "close" } };

/** The sum of a metric's values, whatever their labels. */
export function sumOf(metrics: string, name: string): number {
  const lines = metrics.split("\n").filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
  return lines.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
}
