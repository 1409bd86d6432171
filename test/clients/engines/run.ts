// Real engines: each is installed, started, asked directly, and then asked through the service.

import { join } from "node:path";
import { command } from "../../../scripts/command.ts";
import { type Counts, countsOf } from "../../../scripts/counts.ts";
import { CannotRun, onlyPinned, type Suite } from "../edition.ts";
import { type RealEngine, realEngines } from "./engines.ts";
import { record } from "./record.ts";

const checks_ms = 10 * 60_000;

/** A suite for each engine, by the engine's name. */
export const realEngineSuites: Record<string, Suite> = Object.fromEntries(
  Object.entries(realEngines).map(([name, engine]) => [
    name,
    onlyPinned(`${name} ${engine.version}`, () => countsFor(name, engine)),
  ]),
);

/**
 * A suite of all engines, one after the other. An engine that cannot run here is skipped, and the reason is printed.
 */
export const allRealEngines: Suite = onlyPinned(
  Object.entries(realEngines)
    .map(([name, { version }]) => `${name} ${version}`)
    .join(", "),
  async () => {
    const sum: Counts = { passed: 0, failed: 0, skipped: 0 };
    for (const [name, engine] of Object.entries(realEngines)) {
      const { passed, failed, skipped } = await countsFor(name, engine).catch((failure) => {
        if (!(failure instanceof CannotRun)) throw failure;
        console.error(failure.message);
        return { passed: 0, failed: 0, skipped: 1 };
      });
      sum.passed += passed;
      sum.failed += failed;
      sum.skipped += skipped;
    }
    return sum;
  },
);

async function countsFor(name: string, engine: RealEngine): Promise<Counts> {
  const server = await engine.start();
  try {
    await record(name, engine, server.root);
    const recorded = join(import.meta.dir, "../../engines/recorded.test.ts");
    const files = [join(import.meta.dir, "engines.checks.ts"), recorded, ...(engine.checks ? [engine.checks] : [])];
    const { code, output } = await command([process.execPath, "test", "--timeout=60000", ...files], {
      limit_ms: checks_ms,
      environment: { REAL_ENGINE: name, REAL_ENGINE_ROOT: server.root },
    });
    return countsOf(output, code);
  } finally {
    await server.stop();
  }
}
