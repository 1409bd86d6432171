// Tries mutants (deliberate defects of the product) in copies of the repository in a temporary folder. The checkout
// itself is never changed.

import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { busyness } from "../test/harness/busyness.ts";
import { type Mutant, mutated, notices, testWords } from "../test/mutants/mutant.ts";
import { command, type Outcome } from "./command.ts";
import { lastFile } from "./counts.ts";
import { ran } from "./drawn/ran.ts";
import type { Environment } from "./test-environment.ts";

export interface Verdict {
  kind: "caught" | "failed" | "skipped";
  /** The test that caught the mutant, or the reason why none did. */
  why: string;
}

export interface Finding {
  /** The outcome. `invalid`: no test could run with the mutant, or no test passes without the mutant. */
  kind: "caught" | "survived" | "invalid";
  /** The test that caught the mutant, or which tests were run. */
  why: string;
}

/** A test file that runs the part of the product with the drawn mutant, and its duration without the mutant. */
export interface Expected {
  test: string;
  took_ms: number;
  /**
   * Whether the file is known to pass on this version of the product. Otherwise it is first run without the mutant,
   * before a failure counts.
   */
  passes: boolean;
}

/** The parts of the product's code that a test file ran: the numbers of the parts, by source file. */
export interface Ran {
  took_ms: number;
  parts: Map<string, number[]>;
}

export interface Laboratory {
  /** The reason why the mutant's declaration no longer fits the source; null if it does. */
  stale(mutant: Mutant): string | null;
  /** Runs the test that must catch the mutant, which must not be stale. Concurrent trials need different workers. */
  trial(mutant: Mutant, worker: number): Promise<Verdict>;
  /**
   * Runs these test files in one process, until one fails, on a copy of the repository in which the source file `file`
   * has this text.
   */
  tried(file: string, text: string, tests: readonly Expected[], worker: number): Promise<Finding>;
  /**
   * Runs a test file on a copy with `texts`: source files with a counter in each part (drawn/parts.ts). Null if the
   * test fails.
   */
  counted(test: string, texts: () => Promise<ReadonlyMap<string, string>>, worker: number): Promise<Ran | null>;
}

/** The end of the reason if a mutant was not tried because its test takes too long on this machine. */
export const tooSlow = "is too slow here without the mutant";

/** If the machine's busyness is at least this, it explains a test's timeout. */
const slow = 1.5;

const limit_ms = 120_000;
const test_ms = 20_000;
/**
 * The shortest time limit for a test with a mutant, which may hang. It is shorter than the limit of other tests, but a
 * test gets several times its duration without the mutant.
 */
const mutated_test_ms_min = 8_000;
/** The shortest time limit for a test file with a drawn mutant, which may loop forever. */
const mutated_file_ms_min = 15_000;
/** Files and folders that are not copied, because they are no part of the product or are too large. */
const leftOut = new Set(["node_modules", ".git", ".cache", "dist", "data", ".venv"]);
/**
 * Files that scripts/run generates. They are copied, because without seed.tar.gz, an embedded database takes half a
 * minute to start.
 */
const made = [".cache/seed.tar.gz", ".cache/console.data"];

export function laboratory(environment: Environment, workers: number): Laboratory {
  const folder = mkdtempSync(join(tmpdir(), "sluice-mutants-"));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  const pristine = copyTo(join(folder, "pristine"));
  const trees = Array.from({ length: workers }, (_, worker) => copyTo(join(folder, `${worker}`)));
  const countingTrees = new Map<number, Promise<string>>();
  const baselines = new Map<string, Promise<Outcome>>();

  function run(test: string, tree: string, timeout_ms = test_ms, most_ms = limit_ms): Promise<Outcome> {
    const modes = ["--bail", "--no-orphans", `--timeout=${timeout_ms}`];
    const words = [process.execPath, "test", ...modes, ...testWords(test)];
    return command(words, { limit_ms: most_ms, environment, folder: tree, quiet: true });
  }

  /**
   * Runs a test without a mutant, once for each test: a failure with a mutant only means something if the test passes
   * without it.
   */
  function baseline(test: string): Promise<Outcome> {
    const known = baselines.get(test) ?? run(test, pristine);
    baselines.set(test, known);
    return known;
  }

  function stale(mutant: Mutant): string | null {
    try {
      mutated(readFileSync(join(pristine, mutant.file), "utf8"), mutant);
    } catch (problem) {
      return `stale: ${(problem as Error).message}`;
    }
    const missing = mutant.caughtBy.find((test) => !existsSync(join(pristine, testWords(test)[0]!)));
    return missing === undefined ? null : `stale: there is no test '${missing}'`;
  }

  async function trial(mutant: Mutant, worker: number): Promise<Verdict> {
    const path = join(trees[worker]!, mutant.file);
    const source = readFileSync(path, "utf8");
    for (const test of mutant.caughtBy) {
      const before = await baseline(test);
      if (isLate(before) && busyness() > slow) return { kind: "skipped", why: `${test} ${tooSlow}` };
      if (before.code !== 0) return { kind: "failed", why: `without the mutant, ${test} fails too:\n${before.output}` };
      writeFileSync(path, mutated(source, mutant));
      const outcome = await runMutated(test, trees[worker]!, before.took_ms).finally(() => writeFileSync(path, source));
      if (outcome.code === 124) return { kind: "caught", why: `${test} does not end` };
      if (outcome.code !== 0 && !notices(outcome.output))
        return { kind: "failed", why: `${test} could not run, so no test has noticed:\n${outcome.output}` };
      if (outcome.code !== 0) return { kind: "caught", why: test };
    }
    return { kind: "failed", why: `survived ${mutant.caughtBy.join(", ") || "for want of a test"}` };
  }

  /** Runs a test with a mutant. A test that exceeds its time limit is run once more, with the usual limit. */
  async function runMutated(test: string, tree: string, took_ms: number): Promise<Outcome> {
    const outcome = await run(test, tree, testLimit_ms(took_ms));
    return isLate(outcome) ? run(test, tree) : outcome;
  }

  async function tried(file: string, text: string, tests: readonly Expected[], worker: number): Promise<Finding> {
    const tree = trees[worker]!;
    const path = join(tree, file);
    const source = readFileSync(path, "utf8");
    writeFileSync(path, text);
    try {
      let left = tests;
      while (left.length > 0) {
        const together = await runTogether(left, tree);
        if (together.code === 0) break;
        const at = Math.max(
          0,
          left.findIndex(({ test }) => test === lastFile(together.output)),
        );
        const failed = left[at]!;
        // A file may fail because of what earlier files in the process left behind, so it is run again, alone.
        const alone = at === 0 ? together : await runTogether([failed], tree);
        const outcome = alone.code === 0 ? null : await confirmed(failed, alone, tree);
        if (outcome !== null) return caughtBy(failed.test, file, outcome);
        left = left.slice(at + 1);
      }
      return { kind: "survived", why: `${tests.length} test files` };
    } finally {
      writeFileSync(path, source);
    }
  }

  function runTogether(tests: readonly Expected[], tree: string): Promise<Outcome> {
    const longest_ms = Math.max(...tests.map(({ took_ms }) => took_ms));
    const modes = ["--bail", "--no-orphans", `--timeout=${testLimit_ms(longest_ms)}`];
    const words = [process.execPath, "test", ...modes, ...tests.map(({ test }) => `./${test}`)];
    const sum_ms = tests.reduce((total, { took_ms }) => total + fileLimit_ms(took_ms), 0);
    return command(words, { limit_ms: sum_ms, environment, folder: tree, quiet: true });
  }

  /**
   * The outcome of a test that fails with a drawn mutant; null if it also fails without the mutant, or is only slow.
   */
  async function confirmed(
    { test, took_ms, passes }: Expected,
    outcome: Outcome,
    tree: string,
  ): Promise<Outcome | null> {
    if (!passes && (await baseline(test)).code !== 0) return null;
    if (!isLate(outcome) || 4 * took_ms < mutated_test_ms_min) return outcome;
    const again = await run(test, tree);
    return again.code === 0 ? null : again;
  }

  async function counted(
    test: string,
    texts: () => Promise<ReadonlyMap<string, string>>,
    worker: number,
  ): Promise<Ran | null> {
    const making = countingTrees.get(worker) ?? countingTree(texts, worker);
    countingTrees.set(worker, making);
    const tree = await making;
    const notes = join(tree, ran);
    rmSync(notes, { force: true });
    const { code, took_ms } = await run(test, tree);
    return code === 0 ? { took_ms, parts: partsIn(existsSync(notes) ? readFileSync(notes, "utf8") : "") } : null;
  }

  async function countingTree(texts: () => Promise<ReadonlyMap<string, string>>, worker: number): Promise<string> {
    const tree = copyTo(join(folder, `counting-${worker}`));
    for (const [file, text] of await texts()) writeFileSync(join(tree, file), text);
    return tree;
  }

  return { stale, trial, tried, counted };
}

/** Whether a time limit ended all tests or one of them. */
function isLate({ code, output }: Outcome): boolean {
  return code === 124 || (code !== 0 && output.includes("timed out"));
}

function caughtBy(test: string, file: string, { code, output }: Outcome): Finding {
  // A migration with a syntax error fails before any test runs, so it is not the test that noticed the mutant.
  if (file.endsWith(".sql") && code !== 124 && !notices(output)) return { kind: "invalid", why: test };
  return { kind: "caught", why: code === 124 ? `${test} does not end` : test };
}

/**
 * The parts of the code that a test ran, from recorded lines with a path and a part's number each. Each process of a
 * test writes lines of its own.
 */
function partsIn(notes: string): Map<string, number[]> {
  const found = new Map<string, Set<number>>();
  for (const line of new Set(notes.trim().split("\n"))) {
    const [file = "", part] = line.split(" ");
    if (part !== undefined) found.set(file, (found.get(file) ?? new Set()).add(Number(part)));
  }
  return new Map([...found].map(([file, parts]) => [file, [...parts].sort((a, b) => a - b)]));
}

function testLimit_ms(took_ms: number): number {
  return Math.min(test_ms, Math.max(mutated_test_ms_min, Math.ceil(4 * took_ms)));
}

function fileLimit_ms(took_ms: number): number {
  return Math.max(mutated_file_ms_min, Math.ceil(6 * took_ms));
}

function copyTo(tree: string): string {
  const root = process.cwd();
  cpSync(root, tree, { recursive: true, filter: (path) => path === root || !leftOut.has(basename(path)) });
  for (const path of made) if (existsSync(join(root, path))) cpSync(join(root, path), join(tree, path));
  symlinkSync(join(root, "node_modules"), join(tree, "node_modules"));
  return tree;
}
