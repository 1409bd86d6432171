/** The settings, checks and metrics of a process that is one worker of a node. */

import type { Configuration, ServerSettings } from "../config/configuration.ts";
import { memoryMarkBytes } from "../config/machine.ts";
import { limitsOfOne } from "../config/workers.ts";
import type { CheckResult } from "../core/operations/dependencies.ts";
import { isFailing } from "../core/operations/health.ts";
import type { Metrics } from "../features/telemetry/metrics.ts";
import type { ReadinessCheck } from "../features/upkeep/readiness.ts";
import type { Member } from "../features/workers/member.ts";

const every_ms = 1000;
/** The names of checks that concern the whole node and not a single worker. */
const ofTheNode: readonly string[] = ["workers", "draining"];

/**
 * The settings of this process. A worker has its share of the node's limits, and the ports that the supervisor has
 * checked.
 */
export function settingsOf({ limits, metering, server, storage }: Configuration, member: Member | null) {
  const whole = { ...limits, memory_bytes: limits.memory_bytes || memoryMarkBytes() };
  if (member === null) return { limits: whole, metering, server, storage };
  return { limits: limitsOfOne(whole, member.workers), metering, server: withPorts(server, member), storage };
}

export function withPorts(
  server: ServerSettings,
  { port, operatorPort }: Pick<Member, "port" | "operatorPort">,
): ServerSettings {
  const operator = server.operator && { ...server.operator, port: operatorPort ?? server.operator.port };
  return { ...server, port, operator };
}

/** The reason why this worker cannot admit requests; null if it can. */
export function problemOf(results: readonly CheckResult[]): string | null {
  const failing = results.filter((one) => isFailing(one) && !ofTheNode.includes(one.name));
  return failing.length > 0 ? failing.map(({ name, problem }) => `${name}: ${problem}`).join("; ") : null;
}

/**
 * The node's readiness: a balancer's probe reaches one worker, but requests reach all, so the node is ready if each
 * serving worker is.
 */
export function workersChecks(member: Member | null): ReadinessCheck[] {
  if (member === null) return [];
  return [
    {
      name: "workers",
      severity: "required",
      every_ms,
      read() {
        const others = member.node().failing.filter(({ worker }) => worker !== member.number);
        return others.length > 0
          ? others.map(({ worker, problem }) => `worker ${worker}: ${problem}`).join("; ")
          : null;
      },
    },
    {
      name: "workers_serving",
      severity: "warning",
      every_ms,
      read() {
        const { serving, wanted } = member.node();
        return serving < wanted ? `${serving} of ${wanted} workers serve` : null;
      },
    },
  ];
}

export function workersReadings({ read }: Pick<Metrics, "read">, member: Member | null): void {
  const node = () => member?.node() ?? { wanted: 1, serving: 1, deaths: 0 };
  read("node_workers", () => [
    [{ state: "wanted" }, node().wanted],
    [{ state: "serving" }, node().serving],
  ]);
  read("node_worker_deaths_total", () => node().deaths);
}
