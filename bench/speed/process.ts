// Reads the CPU time and memory of processes from the kernel, and pins processes to cores.

import { readdirSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";

const ticks_a_second = 100;

interface Stat {
  parent: number;
  cpu_us: number;
}

function statOf(pid: number): Stat | null {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)!.split(" ");
    // The process's own user and system time, and that of its child processes that have ended.
    const ticks = [11, 12, 13, 14].reduce((sum, at) => sum + Number(fields[at]), 0);
    return { parent: Number(fields[1]), cpu_us: (ticks * 1e6) / ticks_a_second };
  } catch {
    return null;
  }
}

/** The user and system CPU time so far of a process and all its descendants. */
export function cpu_us(root: number): number {
  const stats = new Map<number, Stat>();
  for (const name of readdirSync("/proc")) {
    const pid = Number(name);
    const stat = Number.isInteger(pid) ? statOf(pid) : null;
    if (stat) stats.set(pid, stat);
  }
  const isWithin = (pid: number): boolean => pid === root || (stats.has(pid) && isWithin(stats.get(pid)!.parent));
  return [...stats].reduce((sum, [pid, stat]) => sum + (isWithin(pid) ? stat.cpu_us : 0), 0);
}

/**
 * The time that the threads of a process have run so far, with a precision of nanoseconds; 0 if the process has ended.
 */
export function ran_us(pid: number): number {
  try {
    const threads = readdirSync(`/proc/${pid}/task`);
    const ran_ns = threads.map((thread) => readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ")[0]);
    return ran_ns.reduce((sum, ns) => sum + Number(ns) / 1000, 0);
  } catch {
    return 0;
  }
}

export function resident_bytes(pid: number): number {
  const [, kilobytes] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kilobytes) * 1024;
}

/**
 * Whether processes are pinned: with two cores or more, the measured program has the last one to itself, and everything
 * else runs on the others.
 */
export const pins = availableParallelism() >= 2 && Bun.which("taskset") !== null;

const last = availableParallelism() - 1;

export const pinned = (words: string[]): string[] => (pins ? ["taskset", "-c", `${last}`, ...words] : words);

/** Keeps this process, and processes that it starts from now on, off the core of the measured program. */
export function pinOthers(): void {
  if (!pins) return;
  const { exitCode } = Bun.spawnSync(["taskset", "-a", "-cp", `0-${last - 1}`, `${process.pid}`]);
  if (exitCode !== 0) throw new Error("taskset could not give the driver its core");
}

/** The number of busy cores, measured over a second, including those used by other programs. */
export async function busyCores(): Promise<number> {
  const idle = () => {
    const [, user, nice, system, idling, waiting] = readFileSync("/proc/stat", "utf8").split("\n")[0]!.split(/\s+/);
    const all = [user, nice, system].reduce((sum, ticks) => sum + Number(ticks), 0);
    return { busy: all, idle: Number(idling) + Number(waiting) };
  };
  const before = idle();
  await Bun.sleep(1000);
  const after = idle();
  const [busy, resting] = [after.busy - before.busy, after.idle - before.idle];
  return (busy / Math.max(1, busy + resting)) * availableParallelism();
}
