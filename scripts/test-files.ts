// The files of a whole run of the tests. The files that start whole fleets, kill and fill real processes, or type the
// commands of the documentation take more than half of the time. A run has a quarter of them, chosen by its seed.

import { drawn } from "../test/harness/depth.ts";

const share = 1 / 4;

/** Files that take ten seconds and more, because of what they start and wait for. */
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
