// Draws mutants, runs the tests that should notice each of them, and collects the results.

import { readFileSync } from "node:fs";
import type { Tree } from "../../test/house/source.ts";
import { mutants } from "../../test/mutants/all.ts";
import { equivalents } from "../../test/mutants/equivalents.ts";
import { named } from "../../test/mutants/mutant.ts";
import type { Expected, Finding, Laboratory } from "../laboratory.ts";
import { longFiles } from "../test-files.ts";
import { type Compiler, compiler } from "./compiler.ts";
import { drawn, moduleOf, shuffled } from "./draw.ts";
import { Findings } from "./findings.ts";
import { addLine, linesIn } from "./lines.ts";
import { countedText } from "./parts.ts";
import { type Product, productOf } from "./product.ts";
import { difference, type Tried } from "./report.ts";
import type { Site } from "./sites.ts";
import { applied } from "./source.ts";
import { hashOf, TestRuns } from "./test-runs.ts";
import { type Possible, testsOf } from "./tests-of.ts";

export interface DrawOptions {
  count: number;
  seed: number;
  /** Names of modules, or ends of file names. Empty for all. */
  modules: readonly string[];
  /** Texts, one of which the ID of a mutant must contain. Empty for all. */
  only: readonly string[];
  within_ms: number;
}

/** The folder in which runs store their results. It may be deleted at any time. */
const remembered_in = ".cache/drawn";

type InParallel = <T>(all: readonly T[], work: (one: T, worker: number) => Promise<unknown>) => Promise<void>;

/**
 * The most test files, of those that are known to run the mutated part, that are run. Their total time is also limited.
 */
const files_max = 60;
/**
 * The most test files that are run in order to find one that runs the mutated part, if none is known to do so. If none
 * of them does, more are run.
 */
const asked_max = 14;
const asked_max_forNone = 60;
/**
 * The limit on the total duration of the test files that are known to run the part, by their durations without a
 * mutant.
 */
const known_ms_max = 60_000;

/**
 * Draws mutants and tries them in parallel. Prints each result immediately, and the change of each survivor as a diff.
 */
export async function tryDrawn(lab: Laboratory, options: DrawOptions, inParallel: InParallel): Promise<Tried[]> {
  await using types = await compiler(process.cwd());
  const { modules } = options;
  const isWanted = (file: string, names: ReadonlySet<string>) =>
    modules.length === 0 || modules.some((word) => isMeant(file, word, names));
  const product = await productOf(types, remembered_in, isWanted);
  const sites = await chosenSites(types, product, options);
  const trials = new Trials(lab, product, options.only.length > 0);
  const until_ms = performance.now() + options.within_ms;
  const results: Tried[] = [];
  await inParallel(sites, async (site, worker) => {
    const finding = await trials.findingOf(site, worker, until_ms);
    results.push({ site, finding });
    if (finding === null) return;
    console.log(`${finding.kind.padEnd(9)} ${site.id} [${finding.why}]`);
    if (finding.kind === "survived") console.log(difference(product.sources.get(site.file)!, site));
  });
  return results;
}

/** Tries mutants. With `isAgain`, the stored results of earlier runs are not used. */
class Trials {
  readonly #long = longFiles();
  readonly #declared = named(mutants).map(({ mutant }) => mutant);
  readonly #tree: Tree;
  readonly #runs: TestRuns;
  readonly #findings: Findings;

  constructor(
    readonly lab: Laboratory,
    readonly product: Product,
    readonly isAgain: boolean,
  ) {
    this.#tree = treeOf(product.sources);
    const texts = async () =>
      new Map([...product.parts].map(([path, parts]) => [path, countedText(path, product.sources.get(path)!, parts)]));
    this.#runs = new TestRuns(`${remembered_in}/tests`, product.sources, this.#tree, (test, worker) =>
      lab.counted(test, texts, worker),
    );
    this.#findings = new Findings(`${remembered_in}/findings.jsonl`, (test) => this.#runs.hashOfTest(test));
  }

  /** The stored result of an earlier run, or that of a new trial; null if no trial could start in time. */
  async findingOf(site: Site, worker: number, until_ms: number): Promise<Finding | null> {
    const text = applied(this.product.sources.get(site.file)!, site.change);
    const possible = testsOf(site.file, this.#tree, this.#declared, this.#long);
    const tests = possible.map(({ test }) => test);
    const kept = this.isAgain ? null : this.#findings.get(site.id, text, tests);
    if (kept !== null || performance.now() >= until_ms) return kept;
    const finding = await this.#tried(site, text, possible, worker);
    this.#findings.add(site.id, text, tests, finding);
    return finding;
  }

  /**
   * Runs the test files that are known to run the mutated part, all together. Then runs the others one by one, if it
   * turns out that they run the part.
   */
  async #tried(site: Site, text: string, possible: readonly Possible[], worker: number): Promise<Finding> {
    const place = this.product.placeOf(site);
    const known: (Expected & { order: number })[] = [];
    const unknown: Possible[] = [];
    for (const [index, one] of possible.entries()) {
      const { test } = one;
      const took_ms = this.#runs.time_ms(test, place);
      if (took_ms === null) unknown.push(one);
      else if (took_ms !== false)
        known.push({ test, took_ms, passes: this.#runs.passes(test), order: took_ms * (2 + index) });
    }
    const first = likeliest(known).sort((a, b) => a.order - b.order);
    const finding = await this.lab.tried(site.file, text, first, worker);
    if (finding.kind !== "survived") return finding;
    let count = first.length;
    let asked = 0;
    for (const { test, isLong } of unknown) {
      if (isLong && count > 0) continue;
      if (count >= files_max || asked >= (count > 0 ? asked_max : asked_max_forNone)) break;
      asked += 1;
      if (!(await this.#runs.take(test, worker))) continue;
      const took_ms = this.#runs.time_ms(test, place);
      if (took_ms === null || took_ms === false) continue;
      count += 1;
      const found = await this.lab.tried(site.file, text, [{ test, took_ms, passes: true }], worker);
      if (found.kind !== "survived") return found;
    }
    if (count > 0) return { kind: "survived", why: `${count} test files run it` };
    const isSure = asked === unknown.length;
    return { kind: "survived", why: isSure ? "no test runs it" : `none of ${asked} test files runs it` };
  }
}

/** The first of these test files whose total duration is within the limit. */
function likeliest<T extends Expected>(tests: readonly T[]): T[] {
  let sum_ms = 0;
  return tests.slice(0, files_max).filter(({ took_ms }, at) => {
    sum_ms += took_ms;
    return at === 0 || sum_ms <= known_ms_max;
  });
}

/** Draws mutants evenly over the modules, without those that do not compile or that are listed as equivalent. */
async function chosenSites(types: Compiler, { sources, sites }: Product, options: DrawOptions): Promise<Site[]> {
  const { count, seed, modules, only } = options;
  const ids = new Set(sites.map(({ id }) => id));
  for (const id of Object.keys(equivalents))
    if (modules.length === 0 && !ids.has(id)) console.log(`stale     ${id} [there is no such mutant any more]`);
  const wanted = sites.filter(({ id }) => only.length === 0 || only.some((part) => id.includes(part)));
  const textOf = ({ file, change }: Site) => applied(sources.get(file)!, change);
  const compiled = new Compiled(`${remembered_in}/compiled/${hashOf([...sources].flat().join("\n"))}.jsonl`);
  const chosen = await drawn(shuffled(wanted, seed), count, async (batch) => {
    const meant = batch.filter(({ id, file }) => file.endsWith(".ts") && !(id in equivalents));
    const unknown = meant.filter(({ id }) => compiled.get(id) === undefined);
    const files = await types.takes(new Map(unknown.map((site) => [site.file, textOf(site)])));
    for (const { id, file } of unknown) compiled.add(id, files.has(file));
    return batch.filter(({ id, file }) => !(id in equivalents) && (file.endsWith(".sql") || compiled.get(id) === true));
  });
  console.log(`${sites.length} mutants in ${sources.size} files; ${chosen.length} drawn with seed ${seed}.`);
  return chosen;
}

/**
 * Stores which mutants of a product compile. If most results of a run are stored ones, checking this again would take
 * most of the time.
 */
class Compiled {
  readonly #known: Map<string, boolean>;

  constructor(readonly path: string) {
    this.#known = new Map(linesIn<[id: string, isTaken: boolean]>(path));
  }

  get(id: string): boolean | undefined {
    return this.#known.get(id);
  }

  add(id: string, isTaken: boolean): void {
    this.#known.set(id, isTaken);
    addLine(this.path, [id, isTaken]);
  }
}

/** Whether the word selects the file: as the name of its module, or as the end of its name. */
function isMeant(path: string, word: string, names: ReadonlySet<string>): boolean {
  return names.has(word) ? moduleOf(path) === word : path.includes(`${word}.`);
}

function treeOf(sources: Tree): Tree {
  const tests = [...new Bun.Glob("test/**/*.ts").scanSync(".")];
  return new Map([...sources, ...tests.map((path) => [path, readFileSync(path, "utf8")] as const)]);
}
