// The files of a complete test run. The files that start whole fleets, kill and fill real processes, or run the
// commands of the documentation take more than half of the time, so a run has a random quarter of them, which its seed
// determines.

import { drawn } from "../test/harness/depth.ts";

const share = 1 / 4;

/** Patterns of files that take ten seconds or longer, because of the processes that they start and wait for. */
export const longPatterns = [
  "test/{attacks,deploy,faults,histories,proof,truth}/**/*.test.ts",
  "test/features/workers/*.test.ts",
  "test/admin/console/{attacks,operators-hour,pages,phone,totals}.test.ts",
  "test/docs/commands.test.ts",
  "test/failover/{fleet-limit,full,load,thousand,three-nodes}.test.ts",
  "test/core/http/{at-once,let-finish,life,raises,tls,warm-up}.test.ts",
  "test/stores/postgres/{embedded,failover,migrate,pooler,replica-reports,restore,roles,snapshot,upkeep-pages}.test.ts",
  "test/core/store/{audit-chain,ledger-crash,policies,rollups}.test.ts",
  "test/features/telemetry/otel.test.ts",
  "test/features/operations/memory.test.ts",
];

export function filesOf(seed: number): string[] {
  const all = filesIn("test/**/*.test.ts");
  const ofLong = longFiles();
  const run = new Set(drawn(Math.ceil(ofLong.size * share), [...ofLong].sort(), seed));
  return all.filter((file) => run.has(file) || !ofLong.has(file));
}

export function longFiles(): Set<string> {
  return new Set(longPatterns.flatMap(filesIn));
}

function filesIn(pattern: string): string[] {
  return [...new Bun.Glob(pattern).scanSync()].sort();
}
