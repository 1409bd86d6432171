// Engines asked for other things than conversations: each engine is installed, started, and asked directly, and every
// answer is recorded; then clients use it through the service.

import { join } from "node:path";
import { command } from "../../../scripts/command.ts";
import { type Counts, countsOf } from "../../../scripts/counts.ts";
import { CannotRun, onlyPinned } from "../edition.ts";
import { pythonWith } from "../virtual-environment.ts";
import { operationServers } from "./operation-servers.ts";
import { recordOperations } from "./record-operations.ts";

const versions = new Map(operationServers.map(({ engine, version }) => [engine, version]));

const checks_ms = 20 * 60_000;
const clients = join(import.meta.dir, "../operations");

/** After a run with a new version, `git diff` shows which answers differ. */
export const operationSuite = onlyPinned([...versions].map((pair) => pair.join(" ")).join(", "), async () => {
  const sum: Counts = { passed: 0, failed: 0, skipped: 0 };
  const python = await pythonWith(join(clients, "requirements.txt"), "operations-python");
  for (const index of operationServers.keys()) {
    const { passed, failed, skipped } = await countsFor(index, python);
    sum.passed += passed;
    sum.failed += failed;
    sum.skipped += skipped;
  }
  return sum;
});

/** The counts of one engine's checks. An engine that cannot run here is skipped, and the reason is printed. */
async function countsFor(index: number, python: string): Promise<Counts> {
  const server = operationServers[index]!;
  const what = `${server.engine}: ${Object.keys(server.models).join(", ")}`;
  try {
    const running = await server.start();
    try {
      await recordOperations(server, running.root);
      console.log(`${what}: recorded`);
      return await checksOf(index, running.root, python);
    } finally {
      await running.stop();
    }
  } catch (failure) {
    console.error(`${what}: ${failure instanceof Error ? failure.message : failure}`);
    const isSkipped = failure instanceof CannotRun;
    return { passed: 0, failed: isSkipped ? 0 : 1, skipped: isSkipped ? 1 : 0 };
  }
}

async function checksOf(index: number, root: string, python: string): Promise<Counts> {
  const words = [process.execPath, "test", "--timeout=120000", join(clients, "operations.checks.ts")];
  const { code, output } = await command(words, {
    limit_ms: checks_ms,
    environment: { OPERATION_SERVER: `${index}`, OPERATION_ROOT: root, OPERATION_PYTHON: python },
  });
  return countsOf(output, code);
}
