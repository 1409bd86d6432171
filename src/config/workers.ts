/**
 * WORKERS: how many processes serve on one port, and what each gets of a node's limits. Pure.
 *
 * What bounds something that they share (memory, connections to Postgres, what an address may try) is divided. What bounds
 * a process's own work or its view of engines (`concurrent_max`, queues, breakers, attempts of a key) each has whole.
 */
import type { ServiceLimits, StorageSettings } from "./configuration.ts";
import { type WorkersWanted, workers_max } from "./settings/sections.ts";

/** With less, a worker would refuse requests for the memory that it needs itself. */
export const worker_bytes_min = 256 * 1024 * 1024;

/** Why this many cannot be, as the rest of a sentence that begins with the setting's name; null: they can. */
export function whyNoWorkers(wanted: WorkersWanted, { databaseUrl, redisUrl }: StorageSettings): string | null {
  if (wanted === 1) return null;
  if (databaseUrl === null)
    return "needs Postgres (DATABASE_URL), because the embedded database belongs to one process: set it, or remove the setting";
  if (redisUrl === null)
    return "needs Redis (REDIS_URL), because processes that share a port must count rates together: set it, or remove the setting";
  return null;
}

export interface Room {
  /** That this process may use, at once. */
  cores: number;
  /** That all of them together may take. */
  memory_bytes: number;
}

export function workersIn(wanted: WorkersWanted, { cores, memory_bytes }: Room): number {
  if (wanted !== "auto") return wanted;
  return Math.max(1, Math.min(cores, Math.floor(memory_bytes / worker_bytes_min), workers_max));
}

/** What is wrong with so many; null: nothing is. */
export function tooSmall(workers: number, { memory_bytes }: Room): string | null {
  const each = memory_bytes / workers;
  if (workers === 1 || each >= worker_bytes_min) return null;
  const MiB = (bytes: number) => `${Math.floor(bytes / 1024 / 1024)} MiB`;
  return `each of ${workers} workers has ${MiB(each)} of memory, and needs ${MiB(worker_bytes_min)}: set fewer (SLUICE_WORKERS), or give them more`;
}

/** Of one of so many. `memory_bytes` is that of the node, and known. */
export function limitsOfOne<Limits extends ServiceLimits>(limits: Limits, workers: number): Limits {
  const share = (of: number) => Math.ceil(of / workers);
  return {
    ...limits,
    memory_bytes: share(limits.memory_bytes),
    in_flight_bytes_max: share(limits.in_flight_bytes_max),
    key_in_flight_bytes_max: share(limits.key_in_flight_bytes_max),
    failed_authentications_per_minute: share(limits.failed_authentications_per_minute),
  };
}
