// Runs the steps of .ci/run after the packages are installed: the build, the tests, the checks, the pages. Every step
// runs, even if an earlier one fails. The last line has the sums of the counts of all steps.

import { type CommandOptions, command, npmRun, type Outcome } from "./command.ts";
import { commitNumber } from "./commit-number.ts";
import {
  type Counts,
  close,
  countsOfStep,
  failedTests,
  failuresOf,
  nothing,
  onceMore,
  passedAlone,
  sum,
} from "./counts.ts";

const minute_ms = 60_000;

interface Step {
  name: string;
  words: string[];
  options: CommandOptions;
  /** Whether the last line of the step's output has counts. Otherwise the whole step counts as one test. */
  counts: boolean;
  /** Set for a step that is run again, alone, if it failed while other steps ran. The second result counts. */
  isAgain?: true;
  /** Set for a step that may fail: its result is printed, and a failure counts as skipped. */
  isOptional?: true;
}

/**
 * Tries declared mutants (test/mutants), different ones each day. No trial starts after 40 s, so that the step takes
 * about a minute.
 */
const mutants = [process.execPath, "scripts/mutants.ts", "--sample", "8", "--within", "40"];

/**
 * Tries mutants that mutation operators generate, different ones each day. Survivors are printed and are no failure,
 * because the goal is to catch nine of ten.
 */
const drawnMutants = [process.execPath, "scripts/mutants.ts", "--drawn", "5", "--within", "30"];

const parts_of_http = 3;

const binary = { TEST_SLUICE: `${process.cwd()}/dist/sluice`, TEST_AGAIN: "1" };

/**
 * The HTTP tests that are not run on the second database, because they choose their database themselves, or because
 * their result does not depend on it.
 */
const notAgain = ["at-once", "learned", "tls", "warm-up"].map((name) => `test/core/http/${name}.test.ts`);

const build: Step = { name: "build", words: [...npmRun, "build"], options: { limit_ms: 6 * minute_ms }, counts: false };

const tests: Step = {
  name: "tests",
  words: [...npmRun, "test"],
  options: { limit_ms: 55 * minute_ms, environment: { ...binary, TEST_SEED: String(commitNumber()) } },
  counts: true,
};

const checks: Step[] = [
  { name: "check", words: [...npmRun, "check"], options: { limit_ms: 12 * minute_ms }, counts: false, isAgain: true },
  { name: "mutants", words: mutants, options: { limit_ms: 10 * minute_ms }, counts: true, isAgain: true },
  {
    name: "drawn mutants",
    words: drawnMutants,
    options: { limit_ms: 10 * minute_ms },
    counts: false,
    isOptional: true,
  },
];

const consolePages: Step[] = [
  {
    name: "the console",
    words: [...npmRun, "console:check", "--", "--commit"],
    options: { limit_ms: 24 * minute_ms },
    counts: false,
    isAgain: true,
  },
];

const site: Step[] = [
  {
    name: "the site",
    words: [...npmRun, "site:check"],
    options: { limit_ms: 24 * minute_ms },
    counts: false,
    isAgain: true,
  },
  {
    name: "the binary",
    words: [...npmRun, "smoke", "--", "--patience", "4"],
    options: { limit_ms: 12 * minute_ms },
    counts: true,
    isAgain: true,
  },
];

const deeper: Step = {
  name: "deeper",
  words: [process.execPath, "scripts/deep.ts", "--commit"],
  options: { limit_ms: 24 * minute_ms, environment: binary },
  counts: true,
};

/** Runs a third of the HTTP tests on the second database. The commit determines which third. */
const embedded: Step = {
  name: "the binary on the embedded database",
  words: [process.execPath, "scripts/test.ts", ...againEmbedded()],
  options: { limit_ms: 24 * minute_ms, environment: { ...binary, TEST_STORE: "pglite" } },
  counts: true,
};

/**
 * The stages run one after another. Each stage is a list of lanes that run concurrently, and a lane is a list of steps,
 * because a browser and a compiler each leave a core idle for long. The tests use both cores, so they run alone.
 *
 * The time limit of a step is about six times its duration on a quiet machine, because CI machines differ that much;
 * `.ci/run` limits the total.
 */
const stages: Step[][][] = [[[build]], [[tests]], [checks, consolePages, site], [[deeper]], [[embedded]]];

function againEmbedded(): string[] {
  const files = [...new Bun.Glob("test/core/http/*.test.ts").scanSync()].sort();
  const part = commitNumber() % parts_of_http;
  return files.filter((file) => !notAgain.includes(file)).filter((_, index) => index % parts_of_http === part);
}

interface Ended {
  step: Step;
  outcome: Outcome;
}

async function main(): Promise<void> {
  const ended: Ended[] = [];
  for (const lanes of stages) {
    const isAlone = lanes.length === 1;
    const lane = async (steps: Step[]) => {
      for (const step of steps) ended.push({ step, outcome: await ran(step, isAlone) });
    };
    await Promise.all(lanes.map(lane));
  }
  const settled: Ended[] = [];
  for (const { step, outcome } of ended) settled.push({ step, outcome: await again(step, outcome) });
  for (const { outcome } of settled) for (const failure of failuresOf(outcome.output)) console.log(`\n${failure}`);
  console.log(`\n${settled.flatMap(linesOf).join("\n")}`);
  await close(settled.reduce((total, { step, outcome }) => sum(total, countsIn(step, outcome)), nothing));
}

/** The outcome of the step's second run if it failed while other steps ran, else its first outcome. */
async function again(step: Step, outcome: Outcome): Promise<Outcome> {
  if (!step.isAgain || countsIn(step, outcome).failed === 0) return outcome;
  console.log(`\n${onceMore} ${step.name}`);
  const second = await ran(step, true);
  if (countsIn(step, second).failed > 0) return second;
  return { ...second, output: `${second.output}\n${passedAlone} ${step.name}\n` };
}

/** The lines about a step in the final summary: its result, its duration, and its failed tests. */
function linesOf({ step, outcome }: Ended): string[] {
  const took = `${step.name}, ${(outcome.took_ms / 1000).toFixed(1)} s`;
  const unsteady = outcome.output.split("\n").filter((line) => line.startsWith(passedAlone));
  if (countsIn(step, outcome).failed === 0) return [`ok     ${took}`, ...unsteady.map((line) => `       ${line}`)];
  return [`FAILED ${took}`, ...failedTests(outcome.output).map((name) => `       ${name}`)];
}

/** Runs a step. If other steps run at the same time, its output is printed when it has ended. */
async function ran(step: Step, isAlone: boolean): Promise<Outcome> {
  const title = `\n== ${step.name}: ${step.words.slice(-2).join(" ")}`;
  if (isAlone) console.log(title);
  const outcome = await command(step.words, { ...step.options, quiet: !isAlone, grace_ms: 3000 });
  if (!isAlone) console.log(`${title}\n${outcome.output}`);
  return outcome;
}

function countsIn(step: Step, outcome: Outcome): Counts {
  const counts = countsOfStep(outcome, step.counts);
  return step.isOptional && counts.failed > 0 ? { ...nothing, skipped: 1 } : counts;
}

await main();
