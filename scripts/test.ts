// `npm test`, or `npm test -- test/core/sse` for some tests. A complete run has a quarter of the files that take long;
// with `--all`, it has all of them. Starts a real Postgres and Redis once for the run. The last line is `N passed, N
// failed, N skipped`. Fails if a test failed, or if no test ran. `--times` prints the cost of each file. With
// TEST_AGAIN=1, as in CI, failed files are run a second time, alone.

import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { version } from "../package.json";
import type { Service } from "../test/harness/services.ts";
import { command } from "./command.ts";
import { compiled } from "./compiled.ts";
import { type Counts, close, countsOf, failedFiles, isWholeRun, onceMore, passedAlone } from "./counts.ts";
import { type Environment, environmentWith } from "./test-environment.ts";
import { filesOf } from "./test-files.ts";
import { longestFirst } from "./test-order.ts";
import { costs, recorded, servicesCpu_s } from "./test-times.ts";

const limit_ms = 40 * 60_000;
/** The time limit of one test: far more than it needs on a quiet machine, so that it does not fail on a busy one. */
const test_ms = 60_000;
/**
 * There are more workers than cores on a small machine, because a file spends half of its time waiting: for a node to
 * start, a lease to expire, or a page to load.
 */
const workers = 5;
/**
 * The most failed files that are run again, one at a time: a tenth of all. If more fail, the cause is not a busy
 * machine.
 */
const again_files_max = 60;

async function main(): Promise<void> {
  const { values, positionals: parts } = options();
  const isWhole = parts.length === 0;
  const seed = Number(process.env.TEST_SEED || Math.floor(Math.random() * 2 ** 31));
  console.log(`TEST_SEED=${seed}`);
  const folder = mkdtempSync(join(tmpdir(), "sluice-tests-"));
  const services: Service[] = [];
  let counts: Counts = { passed: 0, failed: 1, skipped: 0 };
  try {
    const environment = {
      ...(await environmentWith(services)),
      ...(isWhole ? await program(folder) : {}),
      TEST_SEED: String(seed),
      TEST_ALL: isWhole && !values.all ? undefined : "1",
    };
    const files = isWhole && !values.all ? filesOf(seed) : parts;
    counts = await tested(files, values.times ? recorded(folder, environment) : environment, values.times);
  } catch (failure) {
    console.error(failure instanceof Error ? failure.message : failure);
  }
  const stopped = () => Promise.all(services.map((service) => service.stop()));
  if (values.times) console.log(costs(folder, await servicesCpu_s(stopped)));
  else await stopped();
  rmSync(folder, { recursive: true, force: true });
  await close(counts);
}

/** Parses the command-line options. Exits with an error if they are wrong. */
function options() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: { all: { type: "boolean", default: false }, times: { type: "boolean", default: false } },
    });
  } catch (problem) {
    console.error(`${(problem as Error).message}\nusage: npm test -- [--all] [--times] [FILE…]`);
    process.exit(2);
  }
}

/**
 * The program that tests start. A run of all tests starts hundreds of nodes and commands, so the program is compiled
 * first: a compiled command needs a quarter of the CPU time to start. A run of some tests starts the program from
 * source, which is faster for a few commands.
 */
async function program(folder: string): Promise<Environment> {
  if (process.env.TEST_SLUICE) return {};
  const outfile = join(folder, "sluice");
  const { code, output } = await compiled({ outfile, version, quiet: true });
  if (code !== 0) throw new Error(`The sources could not be compiled:\n${output}`);
  return { TEST_SLUICE: outfile };
}

/** Runs these test files; if the list is empty, all files. */
async function tested(files: string[], environment: Environment, times: boolean): Promise<Counts> {
  mkdirSync(".cache", { recursive: true });
  const options = [...longestFirst(), "--reporter=junit", "--reporter-outfile=.cache/junit.xml"];
  // The files of a worker share loaded modules, because loading them for each file takes a quarter of the CPU time. But
  // then the cost of a single file cannot be measured.
  options.push(times ? "--preload=./test/harness/times.ts" : "--no-isolate");
  const outcome = await command(bunTest(workers, [...options, ...files]), { limit_ms, environment });
  if (outcome.code === 124) console.error(`The tests took longer than ${limit_ms / 60_000} minutes and were ended.`);
  const counts = countsOf(outcome.output, outcome.code);
  const { files: failed, failures } = failedFiles(outcome.output);
  // A run that was interrupted may have left out any number of tests, and a failure without a file cannot be repeated.
  const isWhole = outcome.code !== 124 && isWholeRun(outcome.output) && failures >= counts.failed;
  if (process.env.TEST_AGAIN !== "1" || !isWhole) return counts;
  if (failed.length === 0 || failed.length > again_files_max) return counts;
  const stillFailed = await failuresAlone(failed, environment);
  return { ...counts, passed: counts.passed + counts.failed - stillFailed, failed: stillFailed };
}

function bunTest(parallel: number, words: string[], limit_ms = test_ms): string[] {
  // Each worker is a process group of its own; without --no-orphans, the processes that its tests started would outlive
  // it.
  const modes = [
    `--parallel=${parallel}`,
    "--no-orphans",
    `--timeout=${limit_ms}`,
    "--preload=./test/harness/seeded.ts",
  ];
  return [process.execPath, "test", ...modes, ...words];
}

/**
 * Runs the files again, one after another and with the same seed, and returns how many tests fail again. A defect that
 * depends on the seed is found again; a test that failed because the machine was busy passes.
 */
async function failuresAlone(files: string[], environment: Environment): Promise<number> {
  console.log(`\n${onceMore} ${files.join(" ")}`);
  const { output, code } = await command(bunTest(1, files, 4 * test_ms), { limit_ms, environment });
  const again = new Set(failedFiles(output).files);
  const unsteady = files.filter((file) => !again.has(file));
  if (unsteady.length > 0) console.log(`\n${passedAlone} ${unsteady.join(" ")}`);
  return countsOf(output, code).failed;
}

await main();
