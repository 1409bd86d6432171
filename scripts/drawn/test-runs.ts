// Records which parts of the product each test file runs, and its duration. Each test file is run once without a
// mutant, on an instrumented copy; the result is stored in .cache/drawn until the test or a file that it runs changes.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Tree } from "../../test/house/source.ts";
import type { Ran } from "../laboratory.ts";
import { closureOf } from "./tests-of.ts";

export interface TestRun {
  took_ms: number;
  /** A hash of the test file and the helpers that it imports. */
  test: string;
  /** A hash of the product at the time of the run. With another product, the test may run other parts. */
  product: string;
  /**
   * For each file of which the test ran a part: a hash of its text, and the numbers of the parts that ran (parts.ts).
   */
  files: Readonly<Record<string, { text: string; parts: number[] }>>;
}

/** Parts of the product. A test that runs none of them cannot notice a mutant in them. */
export type Place = readonly { file: string; part: number }[];

export class TestRuns {
  readonly #hashes = new Map<string, string>();
  readonly #known = new Map<string, TestRun | null>();
  readonly #taking = new Map<string, Promise<TestRun | null>>();
  readonly #product: string;

  /**
   * The files `sources` are the product's; `tree` also has the tests. The function `counted` runs a test file on an
   * instrumented copy, and returns null if it fails there.
   */
  constructor(
    readonly folder: string,
    readonly sources: Tree,
    readonly tree: Tree,
    readonly counted: (test: string, worker: number) => Promise<Ran | null>,
  ) {
    this.#product = hashOf([...sources].flat().join("\n"));
  }

  /**
   * The duration of the test if it runs one of the parts in `place`, or any part if `place` is null; false if it runs
   * none of them; null if that is not known.
   */
  time_ms(test: string, place: Place | null): number | false | null {
    const run = this.#runOf(test);
    if (run === null || place === null) return run?.took_ms ?? null;
    const isNew = run.product !== this.#product;
    let isUnsure = false;
    for (const { file, part } of place) {
      const ran = run.files[file];
      if (ran === undefined ? isNew : ran.text !== this.#hashOfFile(file)) isUnsure = true;
      else if (ran?.parts.includes(part)) return run.took_ms;
    }
    return isUnsure ? null : false;
  }

  /** Whether the test is known to pass on the current product. */
  passes(test: string): boolean {
    return this.#runOf(test)?.product === this.#product;
  }

  /** Runs the test file, and records the parts that it ran. Returns false if the test fails. */
  async take(test: string, worker: number): Promise<boolean> {
    const taking = this.#taking.get(test) ?? this.#taken(test, worker);
    this.#taking.set(test, taking);
    return (await taking) !== null;
  }

  /** A hash of a test file and its helpers. */
  hashOfTest(test: string): string {
    const known =
      this.#hashes.get(test) ??
      hashOf(
        closureOf(test, this.tree)
          .map((path) => this.tree.get(path))
          .join("\n"),
      );
    this.#hashes.set(test, known);
    return known;
  }

  async #taken(test: string, worker: number): Promise<TestRun | null> {
    const ran = await this.counted(test, worker);
    if (ran === null) return null;
    const files = [...ran.parts].map(([file, parts]) => [file, { text: this.#hashOfFile(file), parts }]);
    const run: TestRun = {
      took_ms: ran.took_ms,
      test: this.hashOfTest(test),
      product: this.#product,
      files: Object.fromEntries(files),
    };
    mkdirSync(this.folder, { recursive: true });
    writeFileSync(this.#pathOf(test), JSON.stringify(run));
    this.#known.set(test, run);
    return run;
  }

  #runOf(test: string): TestRun | null {
    if (!this.#known.has(test)) this.#known.set(test, this.#read(test));
    return this.#known.get(test)!;
  }

  #read(test: string): TestRun | null {
    const path = this.#pathOf(test);
    if (!existsSync(path)) return null;
    const run = JSON.parse(readFileSync(path, "utf8")) as TestRun;
    return run.test === this.hashOfTest(test) ? run : null;
  }

  #pathOf(test: string): string {
    return join(this.folder, `${test.replaceAll("/", "+")}.json`);
  }

  #hashOfFile(file: string): string {
    const known = this.#hashes.get(file) ?? hashOf(this.sources.get(file) ?? "");
    this.#hashes.set(file, known);
    return known;
  }
}

export function hashOf(text: string): string {
  return Bun.hash(text).toString(36);
}
