// `npm test`, or `npm test -- test/sse` for a part. Starts the real Postgres and Redis once for the whole run, and closes
// with the line `N passed, N failed, N skipped`; fails when something failed, and when no test ran.

import { mkdirSync } from "node:fs";
import { type Service, startPostgres, startRedis } from "../test/harness/services.ts";
import { command } from "./command.ts";
import { type Counts, close, countsOf } from "./counts.ts";

const limit_ms = 20 * 60_000;
/** One test: quick on a quiet machine, and no failure on a busy one. */
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

/** Where the tests find their services; and nothing else that could lead them to somebody's real ones. */
async function environmentWith(services: Service[]): Promise<Record<string, string | undefined>> {
  const { DATABASE_URL, REDIS_URL, TEST_DATABASE_URL, TEST_REDIS_URL } = process.env;
  const started = async (start: () => Promise<Service>) => {
    const service = await start();
    services.push(service);
    return service.url;
  };
  const [database, redis] = await Promise.all([
    TEST_DATABASE_URL || DATABASE_URL || started(startPostgres),
    TEST_REDIS_URL || REDIS_URL || started(startRedis),
  ]);
  const own = Object.keys(process.env).filter((name) => name.startsWith("SLUICE_"));
  const cleared = ["DATABASE_URL", "REDIS_URL", "PORT", "HOST", ...own].map((name) => [name, undefined]);
  return { ...Object.fromEntries(cleared), TEST_DATABASE_URL: database, TEST_REDIS_URL: redis };
}

async function tested(parts: string[], environment: Record<string, string | undefined>): Promise<Counts> {
  mkdirSync(".cache", { recursive: true });
  const reports = ["--reporter=junit", "--reporter-outfile=.cache/junit.xml"];
  // Workers are groups of their own: what their tests have started ends with them only where bun is told so.
  const modes = ["--parallel=2", "--no-orphans", `--timeout=${test_ms}`];
  const words = [process.execPath, "test", ...modes, ...reports, ...parts];
  const outcome = await command(words, { limit_ms, environment });
  if (outcome.code === 124) console.error(`The tests took longer than ${limit_ms / 60_000} minutes and were ended.`);
  return countsOf(outcome.output, outcome.code);
}

await main();
