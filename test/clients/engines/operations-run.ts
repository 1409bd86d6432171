// Engines asked for what is not a conversation: each is installed, started, and asked directly. Every answer is recorded.

import type { Counts } from "../../../scripts/counts.ts";
import { CannotRun, onlyPinned } from "../edition.ts";
import { type OperationServer, operationServers } from "./operation-servers.ts";
import { recordOperations } from "./record-operations.ts";

const versions = new Map(operationServers.map(({ engine, version }) => [engine, version]));

/** An engine passes if its answers could be recorded. `git diff` shows what a new version answers otherwise. */
export const operationSuite = onlyPinned([...versions].map((pair) => pair.join(" ")).join(", "), async () => {
  const sum: Counts = { passed: 0, failed: 0, skipped: 0 };
  for (const server of operationServers) sum[await outcomeOf(server)] += 1;
  return sum;
});

async function outcomeOf(server: OperationServer): Promise<keyof Counts> {
  const what = `${server.engine}: ${Object.keys(server.models).join(", ")}`;
  try {
    const running = await server.start();
    try {
      await recordOperations(server, running.root);
    } finally {
      await running.stop();
    }
    console.log(`${what}: recorded`);
    return "passed";
  } catch (failure) {
    console.error(`${what}: ${failure instanceof Error ? failure.message : failure}`);
    return failure instanceof CannotRun ? "skipped" : "failed";
  }
}
