// What .ci/run does once the packages are installed: the tests, the checks, the build, the compiled binary. Every step runs,
// even if an earlier one fails; the last line counts all of them.

import { existsSync } from "node:fs";
import { type CommandOptions, command, type Outcome } from "./command.ts";
import { type Counts, close, failuresOf } from "./counts.ts";

const minute_ms = 60_000;
const closing = /^(\d+) passed, (\d+) failed, (\d+) skipped$/gm;

interface Step {
  name: string;
  words: string[];
  options: CommandOptions;
  /** Whether its last line has counts of its own; otherwise the step counts as one. */
  counts: boolean;
  /** Set for a step that is only printed: if it fails, it counts as skipped. */
  isOptional?: true;
}

const npm = Bun.which("npm") === null ? [process.execPath, "run"] : ["npm", "run"];

/** A different dozen each day. None starts after a minute, so that the step takes about 90 s at most. */
const mutants = [process.execPath, "scripts/mutants.ts", "--sample", "12", "--within", "60"];

/** Some that operators make, different ones each day. Survivors are printed and fail nothing: nine of ten is the goal. */
const drawnMutants = [process.execPath, "scripts/mutants.ts", "--drawn", "8", "--within", "45"];

const binary = { TEST_SLUICE: `${process.cwd()}/dist/sluice` };

/** Tests of HTTP that choose their database themselves, or that no database can change. */
const notAgain = ["at-once", "learned", "tls", "warm-up"].map((name) => `test/http/${name}.test.ts`);

const steps: Step[] = [
  { name: "tests", words: [...npm, "test"], options: { limit_ms: 41 * minute_ms }, counts: true },
  { name: "check", words: [...npm, "check"], options: { limit_ms: 3 * minute_ms }, counts: false },
  { name: "build", words: [...npm, "build"], options: { limit_ms: 3 * minute_ms }, counts: false },
  { name: "mutants", words: mutants, options: { limit_ms: 4 * minute_ms }, counts: true },
  {
    name: "drawn mutants",
    words: drawnMutants,
    options: { limit_ms: 6 * minute_ms },
    counts: false,
    isOptional: true,
  },
  { name: "the console", words: [...npm, "console:check"], options: { limit_ms: 8 * minute_ms }, counts: false },
  { name: "the site", words: [...npm, "site:check"], options: { limit_ms: 8 * minute_ms }, counts: false },
  { name: "the binary", words: [...npm, "smoke"], options: { limit_ms: 2 * minute_ms }, counts: true },
  {
    name: "deeper",
    words: [process.execPath, "scripts/deep.ts", "--commit"],
    options: { limit_ms: 12 * minute_ms, environment: binary },
    counts: true,
  },
];
// The tests of HTTP again, against the binary and on the other database.
if (existsSync("test/http")) {
  steps.push({
    name: "the binary on Postgres",
    words: [process.execPath, "scripts/test.ts", ...onPostgres()],
    options: { limit_ms: 12 * minute_ms, environment: { ...binary, TEST_STORE: "postgres" } },
    counts: true,
  });
}

function onPostgres(): string[] {
  const files = [...new Bun.Glob("test/http/*.test.ts").scanSync()].sort();
  return files.filter((file) => !notAgain.includes(file));
}

async function main(): Promise<void> {
  const total: Counts = { passed: 0, failed: 0, skipped: 0 };
  const told: string[] = [];
  const failures: string[] = [];
  for (const step of steps) {
    console.log(`\n== ${step.name}: ${step.words.slice(-2).join(" ")}`);
    const outcome = await command(step.words, { ...step.options, grace_ms: 3000 });
    const counts = countsOfStep(step, outcome);
    told.push(`${counts.failed === 0 ? "ok    " : "FAILED"} ${step.name}, ${(outcome.took_ms / 1000).toFixed(1)} s`);
    failures.push(...failuresOf(outcome.output));
    total.passed += counts.passed;
    total.failed += counts.failed;
    total.skipped += counts.skipped;
  }
  for (const failure of failures) console.log(`\n${failure}`);
  console.log(`\n${told.join("\n")}`);
  await close(total);
}

function countsOfStep(step: Step, { code, output }: Outcome): Counts {
  const line = step.counts ? [...output.matchAll(closing)].at(-1) : undefined;
  const [passed, failed, skipped] = line ? line.slice(1).map(Number) : [code === 0 && !step.counts ? 1 : 0, 0, 0];
  const counts = { passed: passed!, failed: failed!, skipped: skipped! };
  if (counts.failed === 0 && (code !== 0 || counts.passed === 0)) counts.failed = 1;
  return step.isOptional && counts.failed > 0 ? { passed: 0, failed: 0, skipped: 1 } : counts;
}

await main();
