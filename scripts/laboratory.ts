// Tries mutants in copies of the tree, in a temporary folder. The checkout is only read.

import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { type Mutant, mutated, notices, testWords } from "../test/mutants/mutant.ts";
import { command, type Outcome } from "./command.ts";
import type { Environment } from "./test-environment.ts";

export interface Verdict {
  kind: "caught" | "failed" | "skipped";
  /** The test that noticed, or what is wrong. */
  why: string;
}

export interface Finding {
  /** Invalid: nothing could run with it, or no test passes without it. */
  kind: "caught" | "survived" | "invalid";
  /** The test that noticed, or what was run. */
  why: string;
}

export interface Laboratory {
  /** Why the declaration no longer fits the source; null if it does. */
  stale(mutant: Mutant): string | null;
  /** Runs these test files on a tree with this text in place of the file's, one after the other, until one fails. */
  tried(file: string, text: string, tests: readonly string[], worker: number): Promise<Finding>;
  /** The mutant must not be stale. Trials that run at the same time need different workers. */
  trial(mutant: Mutant, worker: number): Promise<Verdict>;
}

const limit_ms = 120_000;
const test_ms = 20_000;
/** A mutant may make a test wait for what never comes: it gets less time, but several times what the file took without. */
const mutated_test_ms_min = 8_000;
/** The time for one test file of a drawn mutant, and the time after which no other is begun: its guard is near the front. */
const drawn_test_ms = 75_000;
const drawn_ms = 150_000;
/** Not part of the product, or too large to copy. */
const leftOut = new Set(["node_modules", ".git", ".cache", "dist", "data", ".venv"]);
/** Without the seed, an embedded database takes half a minute to start. */
const seed = ".cache/seed.tar.gz";

export function laboratory(environment: Environment, workers: number): Laboratory {
  const folder = mkdtempSync(join(tmpdir(), "sluice-mutants-"));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  const pristine = copyTo(join(folder, "pristine"));
  const trees = Array.from({ length: workers }, (_, worker) => copyTo(join(folder, `${worker}`)));
  const baselines = new Map<string, Promise<Outcome>>();

  function run(test: string, tree: string, timeout_ms = test_ms, most_ms = limit_ms): Promise<Outcome> {
    const modes = ["--bail", "--no-orphans", `--timeout=${timeout_ms}`];
    const words = [process.execPath, "test", ...modes, ...testWords(test)];
    return command(words, { limit_ms: most_ms, environment, folder: tree, quiet: true });
  }

  /** "Caught" means something only if the test passes without the mutant. Runs once for each test. */
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
      const { code, output, took_ms } = await baseline(test);
      if (code !== 0) return { kind: "failed", why: `without the mutant, ${test} fails too:\n${output}` };
      writeFileSync(path, mutated(source, mutant));
      const timeout_ms = Math.min(test_ms, Math.max(mutated_test_ms_min, Math.ceil(4 * took_ms)));
      const outcome = await run(test, trees[worker]!, timeout_ms).finally(() => writeFileSync(path, source));
      if (outcome.code === 124) return { kind: "caught", why: `${test} does not end` };
      if (outcome.code !== 0 && !notices(outcome.output))
        return { kind: "failed", why: `${test} could not run, so no test has noticed:\n${outcome.output}` };
      if (outcome.code !== 0) return { kind: "caught", why: test };
    }
    return { kind: "failed", why: `survived ${mutant.caughtBy.join(", ") || "for want of a test"}` };
  }

  async function tried(file: string, text: string, tests: readonly string[], worker: number): Promise<Finding> {
    const path = join(trees[worker]!, file);
    const source = readFileSync(path, "utf8");
    const until_ms = performance.now() + drawn_ms;
    writeFileSync(path, text);
    try {
      let run_count = 0;
      for (const test of tests) {
        if (performance.now() > until_ms) break;
        run_count += 1;
        const outcome = await patiently(test, trees[worker]!);
        if (outcome === null) continue;
        // A migration with a syntax error fails before any test runs, which proves nothing.
        const { code, output } = outcome;
        if (file.endsWith(".sql") && code !== 124 && !notices(output)) return { kind: "invalid", why: test };
        return { kind: "caught", why: code === 124 ? `${test} does not end` : test };
      }
      return { kind: "survived", why: `${run_count} of ${tests.length} test files` };
    } finally {
      writeFileSync(path, source);
    }
  }

  /** How a test fails with a drawn mutant; null if it passes, or fails without the mutant, or is only slow. */
  async function patiently(test: string, tree: string): Promise<Outcome | null> {
    const outcome = await run(test, tree, mutated_test_ms_min, drawn_test_ms);
    if (outcome.code === 0 || (await baseline(test)).code !== 0) return null;
    if (outcome.code !== 124 && !outcome.output.includes("timed out")) return outcome;
    const { took_ms } = await baseline(test);
    if (4 * took_ms < (outcome.code === 124 ? drawn_test_ms : mutated_test_ms_min)) return outcome;
    const again = await run(test, tree);
    return again.code === 0 ? null : again;
  }

  return { stale, trial, tried };
}

function copyTo(tree: string): string {
  const root = process.cwd();
  cpSync(root, tree, { recursive: true, filter: (path) => path === root || !leftOut.has(basename(path)) });
  if (existsSync(join(root, seed))) cpSync(join(root, seed), join(tree, seed));
  symlinkSync(join(root, "node_modules"), join(tree, "node_modules"));
  return tree;
}
