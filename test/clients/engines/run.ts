// Tests real engines: each is installed, started, sent requests directly, and then used through the service.

import { type Counts, nothing, sum } from "../../../scripts/counts.ts";
import { CannotRun, onlyPinned, ranChecks, type Suite } from "../edition.ts";
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
    let counts = nothing;
    for (const [name, engine] of Object.entries(realEngines)) {
      const more = await countsFor(name, engine).catch((failure) => {
        if (!(failure instanceof CannotRun)) throw failure;
        console.error(failure.message);
        return { ...nothing, skipped: 1 };
      });
      counts = sum(counts, more);
    }
    return counts;
  },
);

async function countsFor(name: string, engine: RealEngine): Promise<Counts> {
  const server = await engine.start();
  try {
    await record(name, engine, server.root);
    const files = ["engines/engines.checks.ts", "../engines/recorded.test.ts", engine.checks ?? []].flat();
    const environment = { REAL_ENGINE: name, REAL_ENGINE_ROOT: server.root };
    return await ranChecks(files, { limit_ms: checks_ms, environment, test_ms: 60_000 });
  } finally {
    await server.stop();
  }
}
