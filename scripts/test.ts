// `npm test`, or `npm test -- test/sse` for a part. Starts a real Postgres and Redis once for the whole run. The last line is
// `N passed, N failed, N skipped`. Fails if a test failed, and if no test ran. `--times` prints what each file cost.

import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { version } from "../package.json";
import type { Service } from "../test/harness/services.ts";
import { command } from "./command.ts";
import { compiled } from "./compiled.ts";
import { type Counts, close, countsOf } from "./counts.ts";
import { type Environment, environmentWith } from "./test-environment.ts";
import { longestFirst } from "./test-order.ts";
import { costs, recorded, servicesCpu_s } from "./test-times.ts";

const limit_ms = 40 * 60_000;
/** For one test: far more than a quiet machine needs, so that a busy one doesn't fail. */
const test_ms = 60_000;
/** Twice as many as a small machine has cores: half of its time, a file waits for a node to start, a lease to lapse, a page. */
const workers = 4;

async function main(): Promise<void> {
  const words = process.argv.slice(2);
  const parts = words.filter((word) => word !== "--times");
  const times = parts.length < words.length;
  const folder = mkdtempSync(join(tmpdir(), "sluice-tests-"));
  const services: Service[] = [];
  let counts: Counts = { passed: 0, failed: 1, skipped: 0 };
  try {
    const environment = { ...(await environmentWith(services)), ...(await program(parts, folder)) };
    counts = await tested(parts, times ? recorded(folder, environment) : environment, times);
  } catch (failure) {
    console.error(failure instanceof Error ? failure.message : failure);
  }
  const stopped = () => Promise.all(services.map((service) => service.stop()));
  if (times) console.log(costs(folder, await servicesCpu_s(stopped)));
  else await stopped();
  rmSync(folder, { recursive: true, force: true });
  await close(counts);
}

/**
 * A whole run starts hundreds of nodes and commands, so it compiles them first: a compiled command starts with a quarter
 * of the CPU. A part starts them from source, which is quicker for a few.
 */
async function program(parts: string[], folder: string): Promise<Environment> {
  if (parts.length > 0 || process.env.TEST_SLUICE) return {};
  const outfile = join(folder, "sluice");
  const { code, output } = await compiled({ outfile, version, quiet: true });
  if (code !== 0) throw new Error(`The sources could not be compiled:\n${output}`);
  return { TEST_SLUICE: outfile };
}

async function tested(parts: string[], environment: Environment, times: boolean): Promise<Counts> {
  mkdirSync(".cache", { recursive: true });
  const reports = ["--reporter=junit", "--reporter-outfile=.cache/junit.xml"];
  if (times) reports.push("--preload=./test/harness/times.ts");
  // Each worker is a process group of its own; without --no-orphans, what its tests started would outlive it.
  const modes = [`--parallel=${workers}`, "--no-orphans", `--timeout=${test_ms}`, ...longestFirst()];
  const words = [process.execPath, "test", ...modes, ...reports, ...parts];
  const outcome = await command(words, { limit_ms, environment });
  if (outcome.code === 124) console.error(`The tests took longer than ${limit_ms / 60_000} minutes and were ended.`);
  return countsOf(outcome.output, outcome.code);
}

await main();
