/** The cores, memory and descriptors that the machine or the container gives a process. */
import { closeSync, openSync, readFileSync } from "node:fs";
import { availableParallelism, totalmem } from "node:os";
import { join } from "node:path";

/** Reads a file and returns its text; null if it cannot be read. */
type ReadText = (path: string) => string | null;

export function readText(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
}

/** The lowest memory limit of the control groups of this process (version 2 or 1); null if none sets one. */
export function memoryLimitBytes(read: ReadText): number | null {
  const limits = memoryFiles(read("/proc/self/cgroup") ?? "").map((path) => Number(read(path)?.trim() || Number.NaN));
  // A control group without a limit has `max` in its file (version 2), or more bytes than any machine has (version 1).
  const real = limits.filter((bytes) => bytes > 0 && bytes < 2 ** 60);
  return real.length > 0 ? Math.min(...real) : null;
}

/**
 * The files that may hold the memory limits of these groups. In a container, the process's own group is often at the
 * root, whatever its path is, so the files at the root and at the path are both read.
 */
function memoryFiles(groups: string): string[] {
  const unified = (path: string) => join("/sys/fs/cgroup", path, "memory.max");
  const legacy = (path: string) => join("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes");
  return [
    unified("/"),
    unified(ownGroup(groups, "")),
    legacy("/"),
    legacy(ownGroup(groups, "(?:[^:]*,)?memory(?:,[^:]*)?")),
  ];
}

function ownGroup(groups: string, controller: string): string {
  return new RegExp(`^\\d+:${controller}:(/.*)$`, "m").exec(groups)?.[1] ?? "/";
}

/** The memory above which a process takes no new requests: 85 % of its container's limit, else half of the machine's. */
export function memoryMarkBytes(read: ReadText = readText, machine_bytes: number = totalmem()): number {
  const limit = memoryLimitBytes(read);
  return Math.floor(limit !== null && limit < machine_bytes ? limit * 0.85 : machine_bytes / 2);
}

/** The number of cores that this process may keep busy, by its affinity and the quotas of its control groups. */
export function coresOf(read: ReadText = readText, cores: number = availableParallelism()): number {
  const groups = read("/proc/self/cgroup") ?? "";
  const paid = ["/", ownGroup(groups, "")].flatMap((path) => {
    const [quota, period] = (read(join("/sys/fs/cgroup", path, "cpu.max")) ?? "").trim().split(/\s+/).map(Number);
    return quota && period ? [quota / period] : [];
  });
  const legacy = ["/", ownGroup(groups, "(?:[^:]*,)?cpu(?:,[^:]*)?")].flatMap((path) => {
    const of = (file: string) => Number(read(join("/sys/fs/cgroup/cpu", path, file)) ?? Number.NaN);
    const [quota, period] = [of("cpu.cfs_quota_us"), of("cpu.cfs_period_us")];
    return quota > 0 && period > 0 ? [quota / period] : [];
  });
  return Math.max(1, Math.floor(Math.min(cores, ...paid, ...legacy)));
}

/** The most descriptors that a process may have open; null on systems other than Linux. */
export function descriptorLimit(read: ReadText = readText): number | null {
  const soft = /^Max open files\s+(\d+)/m.exec(read("/proc/self/limits") ?? "")?.[1];
  return soft === undefined ? null : Number(soft);
}

/** The lowest free descriptor. The system hands out the lowest one first, so all below it are open. */
export function lowestFreeDescriptor(): number {
  try {
    const descriptor = openSync("/dev/null", "r");
    closeSync(descriptor);
    return descriptor;
  } catch {
    // No descriptor is free.
    return Number.POSITIVE_INFINITY;
  }
}
