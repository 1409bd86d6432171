// `npm run mutants`: breaks lines of the product on purpose, one at a time (test/mutants), and runs the tests that must
// fail. Exits with 1 if a mutant survives, or if a declaration no longer fits the source.
// - `-- WORD…`: tries the mutants of a file of test/mutants, or those whose names contain the word.
// - `--sample K --seed S`: tries K mutants, different ones for each seed (default: the number of the day).
// - `--since COMMIT`: tries the mutants of files that have changed since the commit, and those that a changed test must
//   catch.
// - `--within SECONDS`: starts no more mutants after that time.
// - `--drawn K --seed S`: makes mutants by mutation operators instead (scripts/drawn), evenly over the modules.
//   `--module WORD` takes those of a module or a file, and `--only IDENTITY` those whose identity contains the text.
//
// Drawn mutants that survive are printed, and are no failure: the goal is to catch nine of ten, and the mutants drawn
// on a day must not fail an unrelated change. After an interruption, the same command continues (.cache/drawn).

import { parseArgs } from "node:util";
import Table from "cli-table3";
import type { Service } from "../test/harness/services.ts";
import { mutants } from "../test/mutants/all.ts";
import { chosen, type Named, named, ofFiles, sampled } from "../test/mutants/mutant.ts";
import { close } from "./counts.ts";
import { reportDrawn } from "./drawn/report.ts";
import { type DrawOptions, tryDrawn } from "./drawn/trials.ts";
import { type Laboratory, laboratory, tooSlow, type Verdict } from "./laboratory.ts";
import { type Environment, environmentWith } from "./test-environment.ts";

const usage = `usage: npm run mutants -- [WORD…] [--since COMMIT] [--sample K] [--seed S] [--within SECONDS]
       npm run mutants -- --drawn K [--seed S] [--module WORD]… [--only IDENTITY]… [--within SECONDS]
  Whole numbers, K and SECONDS at least 1. WORD is a room, or part of a mutant's name.`;
const day_ms = 24 * 3_600_000;
const trials_at_a_time = 2;

interface Result extends Named {
  verdict: Verdict;
  took_ms: number;
}

async function main(): Promise<void> {
  const all = named(mutants);
  let asked: ReturnType<typeof options>;
  try {
    asked = options(all);
  } catch (problem) {
    console.error(`${(problem as Error).message}\n${usage}`);
    process.exit(2);
  }
  const services: Service[] = [];
  if (asked.drawn) await drawnAlone(asked.drawn, services);
  const results: Result[] = [];
  let fell = false;
  try {
    const lab = await laboratoryWith(services, { TEST_ALL: "1" });
    const until_ms = performance.now() + asked.within_ms;
    // All declarations are checked, even those outside the sample, because that takes no time.
    const stale = all.flatMap((one) => {
      const why = lab.stale(one.mutant);
      return why === null ? [] : [{ ...one, verdict: { kind: "failed", why } as const, took_ms: 0 }];
    });
    for (const one of stale) results.push(told(one));
    const fresh = asked.tried.filter(({ mutant }) => stale.every((one) => one.mutant !== mutant));
    await inParallel(fresh, async (one, worker) => results.push(told(await tried(lab, one, worker, until_ms))));
  } catch (failure) {
    fell = true;
    console.error(failure);
  }
  await Promise.all(services.map((service) => service.stop()));
  report(results);
  const count = (kind: Verdict["kind"]) => results.filter(({ verdict }) => verdict.kind === kind).length;
  const isSlow = ({ verdict: { why } }: Result) => why.endsWith(tooSlow);
  const triedNone = asked.tried.length > 0 && count("caught") + count("failed") === 0 && !results.some(isSlow);
  const failed = count("failed") + (fell || triedNone ? 1 : 0);
  await close({ passed: count("caught"), failed, skipped: count("skipped") });
}

/**
 * Creates a laboratory that runs the tests from source, on this run's Postgres, which starts faster than an embedded
 * database.
 */
async function laboratoryWith(services: Service[], more: Environment): Promise<Laboratory> {
  const environment = { ...(await environmentWith(services)), TEST_SLUICE: undefined, ...more };
  return laboratory(environment, trials_at_a_time);
}

/**
 * Tries drawn mutants only. Survivors count as skipped. A test file must behave the same with and without a mutant, so
 * tests for both kinds of database run on Postgres alone, and the seed determines the random cases.
 */
async function drawnAlone(asked: DrawOptions, services: Service[]): Promise<never> {
  const results = await laboratoryWith(services, { TEST_STORE: "postgres", TEST_SEED: String(asked.seed) })
    .then((lab) => tryDrawn(lab, asked, inParallel))
    .finally(() => Promise.all(services.map((service) => service.stop())));
  reportDrawn(results);
  const passed = results.filter(({ finding }) => finding?.kind === "caught").length;
  return close({ passed, failed: results.length === 0 ? 1 : 0, skipped: results.length - passed });
}

function options(all: readonly Named[]) {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      since: { type: "string" },
      sample: { type: "string" },
      seed: { type: "string" },
      within: { type: "string" },
      drawn: { type: "string" },
      module: { type: "string", multiple: true },
      only: { type: "string", multiple: true },
    },
  });
  const number = (name: "sample" | "seed" | "within" | "drawn", least: number, otherwise: number) => {
    const given = values[name] === undefined ? otherwise : Number(values[name]);
    if (given !== otherwise && !(Number.isInteger(given) && given >= least))
      throw new Error(`--${name} is not a whole number from ${least} on`);
    return given;
  };
  const meant = chosen(all, positionals);
  const some = values.since === undefined ? meant : ofFiles(meant, changedSince(values.since));
  const seed = number("seed", 0, Math.floor(Date.now() / day_ms));
  const within_ms = number("within", 1, Number.POSITIVE_INFINITY) * 1000;
  const drawn: DrawOptions | null =
    values.drawn === undefined
      ? null
      : { count: number("drawn", 1, 1), seed, modules: values.module ?? [], only: values.only ?? [], within_ms };
  return {
    drawn,
    tried: sampled(some, number("sample", 1, some.length), seed, ({ mutant }) => mutant.name),
    within_ms,
  };
}

/**
 * The files that differ from a commit, whether the changes are committed or not. Throws an Error if git does not know
 * the commit.
 */
function changedSince(commit: string): Set<string> {
  const { success, stdout } = Bun.spawnSync(["git", "diff", "--name-only", "--end-of-options", commit, "--"]);
  if (!success) throw new Error(`--since is not a commit: '${commit}'`);
  return new Set(stdout.toString().split("\n"));
}

async function tried(lab: Laboratory, one: Named, worker: number, until_ms: number): Promise<Result> {
  const began = performance.now();
  const { skip } = one.mutant;
  const isLate = began >= until_ms;
  const verdict: Verdict =
    skip !== undefined || isLate
      ? { kind: "skipped", why: skip ?? "no time was left" }
      : await lab.trial(one.mutant, worker);
  return { ...one, verdict, took_ms: performance.now() - began };
}

async function inParallel<T>(all: readonly T[], work: (one: T, worker: number) => Promise<unknown>): Promise<void> {
  const waiting = [...all];
  const worker = async (_: unknown, index: number) => {
    for (let one = waiting.shift(); one !== undefined; one = waiting.shift()) await work(one, index);
  };
  await Promise.all(Array.from({ length: trials_at_a_time }, worker));
}

function told(result: Result): Result {
  const { room, mutant, verdict, took_ms } = result;
  const word = verdict.kind === "failed" ? "FAILED" : verdict.kind;
  console.log(`${word.padEnd(7)} ${room}: ${mutant.name} [${(took_ms / 1000).toFixed(1)} s]\n        ${verdict.why}`);
  if (verdict.kind === "failed") console.log(`        breaks ${mutant.rule}`);
  return result;
}

function report(results: readonly Result[]): void {
  const table = new Table({
    head: ["room", "caught", "failed", "skipped", "seconds"],
    style: { head: [], border: [] },
  });
  for (const room of Object.keys(mutants)) {
    const some = results.filter((one) => one.room === room);
    const count = (kind: Verdict["kind"]) => some.filter(({ verdict }) => verdict.kind === kind).length;
    const seconds = some.reduce((total, { took_ms }) => total + took_ms, 0) / 1000;
    if (some.length > 0) table.push([room, count("caught"), count("failed"), count("skipped"), seconds.toFixed(0)]);
  }
  console.log(table.toString());
}

await main();
