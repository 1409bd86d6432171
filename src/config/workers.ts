/**
 * WORKERS: how many processes serve on one port, and which part of a node's limits each gets. Pure.
 *
 * A limit on something that the processes share (memory, connections to Postgres, attempts from an address) is divided.
 * A limit on a process's own work or on its view of engines (`concurrent_max`, queues, breakers) applies to each
 * process.
 */
import type { ServiceLimits, StorageSettings } from "./configuration.ts";
import { type WorkersWanted, workers_max } from "./settings/sections.ts";

/**
 * The least memory of a worker. With less, the worker itself would need so much of it that requests would be refused.
 */
const worker_bytes_min = 256 * 1024 * 1024;

/**
 * The reason why a node cannot have this many workers, which completes a sentence that begins with the setting; null:
 * it can.
 */
export function whyNoWorkers(wanted: WorkersWanted, { databaseUrl, redisUrl }: StorageSettings): string | null {
  if (wanted === 1) return null;
  if (databaseUrl === null)
    return "needs Postgres (DATABASE_URL), because the embedded database belongs to one process: set it, or remove the setting";
  if (redisUrl === null)
    return "needs Redis (REDIS_URL), because processes that share a port must count rates together: set it, or remove the setting";
  return null;
}

export interface MachineRoom {
  /** The number of cores that this process may use simultaneously. */
  cores: number;
  /** The memory that all workers may take together. */
  memory_bytes: number;
}

export function workersIn(wanted: WorkersWanted, { cores, memory_bytes }: MachineRoom): number {
  if (wanted !== "auto") return wanted;
  return Math.max(1, Math.min(cores, Math.floor(memory_bytes / worker_bytes_min), workers_max));
}

/** A message if each worker would have too little memory; else null. */
export function tooSmall(workers: number, { memory_bytes }: MachineRoom): string | null {
  const each = memory_bytes / workers;
  if (workers === 1 || each >= worker_bytes_min) return null;
  const MiB = (bytes: number) => `${Math.floor(bytes / 1024 / 1024)} MiB`;
  return `each of ${workers} workers has ${MiB(each)} of memory, and needs ${MiB(worker_bytes_min)}: set fewer (SLUICE_WORKERS), or give them more`;
}

/** The limits of one worker among several. `memory_bytes` must be the node's, and not 0. */
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
