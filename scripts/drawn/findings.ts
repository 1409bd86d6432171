// Stores the results of trials in .cache/drawn, so that a later run can continue. A result is valid until the mutated
// file, or a test file on which it depends, changes.

import type { Finding } from "../laboratory.ts";
import { addLine, linesIn } from "./lines.ts";
import { hashOf } from "./test-runs.ts";

interface Kept extends Finding {
  id: string;
  /**
   * Two hashes: `text` is that of the mutated file; `tests` is that of the test file that noticed the mutant, or of all
   * test files that could have noticed it.
   */
  text: string;
  tests: string;
}

export class Findings {
  readonly #kept = new Map<string, Kept>();

  /** The function `hashOfTest` returns a hash of a test file and its helpers. */
  constructor(
    readonly path: string,
    readonly hashOfTest: (test: string) => string,
  ) {
    for (const kept of linesIn<Kept>(path)) this.#kept.set(kept.id, kept);
  }

  /**
   * The stored result for this text of the mutated file, if the test files that could notice the mutant are unchanged;
   * otherwise null.
   */
  get(id: string, text: string, tests: readonly string[]): Finding | null {
    const kept = this.#kept.get(id);
    if (kept === undefined || kept.text !== hashOf(text)) return null;
    return kept.tests === this.#hashOf(kept, tests) ? { kind: kept.kind, why: kept.why } : null;
  }

  add(id: string, text: string, tests: readonly string[], finding: Finding): void {
    const kept: Kept = { id, ...finding, text: hashOf(text), tests: this.#hashOf(finding, tests) };
    this.#kept.set(id, kept);
    addLine(this.path, kept);
  }

  #hashOf({ kind, why }: Finding, tests: readonly string[]): string {
    const meant = kind === "survived" ? tests : tests.filter((test) => why.startsWith(test));
    return hashOf(meant.map((test) => `${test} ${this.hashOfTest(test)}`).join("\n"));
  }
}
