// Tests engines with operations other than chat: each engine is installed, started, and sent requests directly, and
// every response is recorded; then clients use the engine through the service.

import { join } from "node:path";
import { type Counts, nothing, sum } from "../../../scripts/counts.ts";
import { CannotRun, onlyPinned, ranChecks } from "../edition.ts";
import { pythonWith } from "../virtual-environment.ts";
import { operationServers } from "./operation-servers.ts";
import { recordOperations } from "./record-operations.ts";

const versions = new Map(operationServers.map(({ engine, version }) => [engine, version]));

const checks_ms = 20 * 60_000;

/** The suite of these engines. After a run with a new version, `git diff` shows which recorded responses differ. */
export const operationSuite = onlyPinned([...versions].map((pair) => pair.join(" ")).join(", "), async () => {
  const python = await pythonWith(join(import.meta.dir, "../operations/requirements.txt"), "operations-python");
  let counts = nothing;
  for (const index of operationServers.keys()) counts = sum(counts, await countsFor(index, python));
  return counts;
});

/**
 * Runs the checks of one engine, and returns their counts. An engine that cannot run here is skipped, and the reason is
 * printed.
 */
async function countsFor(index: number, python: string): Promise<Counts> {
  const server = operationServers[index]!;
  const what = `${server.engine}: ${Object.keys(server.models).join(", ")}`;
  try {
    const running = await server.start();
    try {
      await recordOperations(server, running.root);
      console.log(`${what}: recorded`);
      const environment = { OPERATION_SERVER: `${index}`, OPERATION_ROOT: running.root, OPERATION_PYTHON: python };
      const how = { limit_ms: checks_ms, environment, test_ms: 120_000 };
      return await ranChecks(["operations/operations.checks.ts"], how);
    } finally {
      await running.stop();
    }
  } catch (failure) {
    console.error(`${what}: ${failure instanceof Error ? failure.message : failure}`);
    return { ...nothing, [failure instanceof CannotRun ? "skipped" : "failed"]: 1 };
  }
}
