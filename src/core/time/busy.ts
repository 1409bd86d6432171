/** How much of a core this process's main thread wants: the time that it ran, and waited for a core to run on. */
import { readFileSync } from "node:fs";

/**
 * Milliseconds since some instant. The waiting counts, because a node that shares its core, or is throttled, is at its
 * limit before it has used a whole one.
 */
export function busy_ms(): number {
  try {
    const [ran_ns = "", waited_ns = ""] = readFileSync("/proc/self/schedstat", "latin1").split(" ");
    return (Number(ran_ns) + Number(waited_ns)) / 1e6;
  } catch {
    // Not Linux: all threads of the process, and only while they run.
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  }
}
