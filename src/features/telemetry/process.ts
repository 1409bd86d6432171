/** Metrics of the process itself: time, memory, descriptors, and how late its timers are. */
import { readdirSync } from "node:fs";
import { createHistogram } from "node:perf_hooks";
import type { Instruments } from "./registry.ts";

const nanoseconds = 1e-9;

/** Registers the metrics of the process. `descriptors_max`: null if the system does not report a limit. */
export function watchProcess({ read }: Pick<Instruments, "read">, descriptors_max: number | null) {
  // The runtime's own monitor is not used: it would wake an idle process more often than everything else.
  const delay = createHistogram();
  const startedAt_s = Date.now() / 1000 - process.uptime();
  read("process_event_loop_delay_seconds", () => {
    const { mean, max } = delay;
    const p99 = delay.percentile(99);
    delay.reset();
    // NaN and negative values mean that nothing was measured since the last reading.
    const seconds = (value: number) => (Number.isFinite(value) && value > 0 ? value * nanoseconds : 0);
    return [
      [{ statistic: "mean" }, seconds(mean)],
      [{ statistic: "p99" }, seconds(p99)],
      [{ statistic: "max" }, seconds(max)],
    ];
  });
  read("process_memory_bytes", () => {
    const { heapUsed, heapTotal, external, arrayBuffers } = process.memoryUsage();
    return [
      [{ kind: "heap_used" }, heapUsed],
      [{ kind: "heap_total" }, heapTotal],
      [{ kind: "external" }, external],
      [{ kind: "array_buffers" }, arrayBuffers],
    ];
  });
  read("process_resident_memory_bytes", () => process.memoryUsage.rss());
  read("process_cpu_seconds_total", () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  });
  read("process_open_fds", openDescriptors);
  read("process_max_fds", () => descriptors_max ?? 0);
  read("process_start_time_seconds", () => startedAt_s);
  return {
    /** Records how late a timer was. A histogram takes whole numbers from 1. */
    late: (ms: number) => delay.record(Math.max(1, Math.round(ms / 1000 / nanoseconds))),
  };
}

/** The number of open descriptors; 0 if the system does not report it (it is not Linux). */
function openDescriptors(): number {
  try {
    return readdirSync("/proc/self/fd").length;
  } catch {
    return 0;
  }
}
