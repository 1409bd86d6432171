// `npm test`, or `npm test -- test/sse` for a part. Starts a real Postgres and Redis once for the whole run. The last line is
// `N passed, N failed, N skipped`. Fails if a test failed, and if no test ran.

import { mkdirSync } from "node:fs";
import type { Service } from "../test/harness/services.ts";
import { command } from "./command.ts";
import { type Counts, close, countsOf } from "./counts.ts";
import { type Environment, environmentWith } from "./test-environment.ts";

const limit_ms = 30 * 60_000;
/** For one test: far more than a quiet machine needs, so that a busy one doesn't fail. */
const test_ms = 20_000;

async function main(): Promise<void> {
  const services: Service[] = [];
  let counts: Counts = { passed: 0, failed: 1, skipped: 0 };
  try {
    counts = await tested(process.argv.slice(2), await environmentWith(services));
  } catch (failure) {
    console.error(failure instanceof Error ? failure.message : failure);
  }
  await Promise.all(services.map((service) => service.stop()));
  await close(counts);
}

async function tested(parts: string[], environment: Environment): Promise<Counts> {
  mkdirSync(".cache", { recursive: true });
  const reports = ["--reporter=junit", "--reporter-outfile=.cache/junit.xml"];
  // Each worker is a process group of its own; without --no-orphans, what its tests started would outlive it.
  const modes = ["--parallel=2", "--no-orphans", `--timeout=${test_ms}`];
  const words = [process.execPath, "test", ...modes, ...reports, ...parts];
  const outcome = await command(words, { limit_ms, environment });
  if (outcome.code === 124) console.error(`The tests took longer than ${limit_ms / 60_000} minutes and were ended.`);
  return countsOf(outcome.output, outcome.code);
}

await main();
