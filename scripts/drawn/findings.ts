// The results of trials, kept in .cache/drawn, so that a run can go on where another stopped. A finding is valid until the
// mutated file, or a test file on which it rests, has changed.

import type { Finding } from "../laboratory.ts";
import { addLine, linesIn } from "./lines.ts";
import { hashOf } from "./test-runs.ts";

interface Kept extends Finding {
  id: string;
  /**
   * Hashes of the mutated text, and of test files: of the one that noticed the mutant, or of all that could have
   * noticed it.
   */
  text: string;
  tests: string;
}

export class Findings {
  readonly #kept = new Map<string, Kept>();

  /** `hashOfTest` hashes a test file with its helpers. */
  constructor(
    readonly path: string,
    readonly hashOfTest: (test: string) => string,
  ) {
    for (const kept of linesIn<Kept>(path)) this.#kept.set(kept.id, kept);
  }

  /**
   * The finding for this text of the mutated file, if the test files that could notice are unchanged; otherwise null.
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
