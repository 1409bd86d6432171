// `npm test`, or `npm test -- test/core/sse` for a part. A whole run has a quarter of the files that take long, and `--all` has
// all of them. Starts a real Postgres and Redis once for the run. The last line is `N passed, N failed, N skipped`. Fails if a
// test failed, and if no test ran. `--times` prints what each file cost. With TEST_AGAIN=1, as in CI, files that failed run
// a second time, by themselves.

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
/** The time limit of one test: far more than a quiet machine needs, so that a busy one doesn't fail. */
const test_ms = 60_000;
/**
 * More workers than a small machine has cores: half of its time, a file waits for a node to start, a lease to lapse, a
 * page.
 */
const workers = 5;
/** The most files that run again, one after the other: a tenth of all. If more fail, the cause is not a busy machine. */
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

/** The options of the command line. Ends the process if they are wrong. */
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
 * A run of all tests starts hundreds of nodes and commands, so it compiles the program first: a compiled command starts
 * with a quarter of the CPU. A run of some tests starts the program from source, which is quicker for a few commands.
 */
async function program(folder: string): Promise<Environment> {
  if (process.env.TEST_SLUICE) return {};
  const outfile = join(folder, "sluice");
  const { code, output } = await compiled({ outfile, version, quiet: true });
  if (code !== 0) throw new Error(`The sources could not be compiled:\n${output}`);
  return { TEST_SLUICE: outfile };
}

/** Runs these test files; an empty list means all files. */
async function tested(files: string[], environment: Environment, times: boolean): Promise<Counts> {
  mkdirSync(".cache", { recursive: true });
  const options = [...longestFirst(), "--reporter=junit", "--reporter-outfile=.cache/junit.xml"];
  // The files that a worker runs share modules, since loading them for each file takes a quarter of the CPU. But then
  // the cost of a single file cannot be told.
  options.push(times ? "--preload=./test/harness/times.ts" : "--no-isolate");
  const outcome = await command(bunTest(workers, [...options, ...files]), { limit_ms, environment });
  if (outcome.code === 124) console.error(`The tests took longer than ${limit_ms / 60_000} minutes and were ended.`);
  const counts = countsOf(outcome.output, outcome.code);
  const { files: failed, failures } = failedFiles(outcome.output);
  // A run that broke off may have left out any number of tests, and a failure of no file cannot be tried again.
  const isWhole = outcome.code !== 124 && isWholeRun(outcome.output) && failures >= counts.failed;
  if (process.env.TEST_AGAIN !== "1" || !isWhole) return counts;
  if (failed.length === 0 || failed.length > again_files_max) return counts;
  const stillFailed = await failuresAlone(failed, environment);
  return { ...counts, passed: counts.passed + counts.failed - stillFailed, failed: stillFailed };
}

function bunTest(parallel: number, words: string[], limit_ms = test_ms): string[] {
  // Each worker is a process group of its own; without --no-orphans, what its tests started would outlive it.
  const modes = [
    `--parallel=${parallel}`,
    "--no-orphans",
    `--timeout=${limit_ms}`,
    "--preload=./test/harness/seeded.ts",
  ];
  return [process.execPath, "test", ...modes, ...words];
}

/**
 * Runs the files again, one after the other and with the same seed, and returns how many tests fail again. A defect that a
 * seed finds is found again; a test that failed because the machine was busy passes.
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
