// Reads a process's current memory, its peak memory and its CPU time from the operating system.

import { readFileSync, writeFileSync } from "node:fs";

export function resident_bytes(pid: number): number {
  return statusOf(pid, "VmRSS");
}

/** The peak memory since the last `forgetPeak`. */
export function peak_bytes(pid: number): number {
  return Math.max(statusOf(pid, "VmHWM"), statusOf(pid, "VmRSS"));
}

/** Resets the peak memory that Linux records: writing 5 does that (proc(5), clear_refs). */
export function forgetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, "5");
}

export function cpu_ms(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ");
  const ticks_per_second = 100;
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / ticks_per_second;
}

function statusOf(pid: number, field: string): number {
  const found = new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(readFileSync(`/proc/${pid}/status`, "utf8"));
  return Number(found?.[1] ?? 0) * 1024;
}
