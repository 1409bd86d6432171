// The known findings of a target, by verdict (kind of finding). A run fails if it has findings of a verdict that the
// file does not list.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Finding, Verdict } from "./judge.ts";

export interface Known {
  verdict: Verdict;
  /** The cause of the findings, and where they were reported. */
  because: string;
}

/** Reads `targets/NAME/known.json`, which may be missing. */
export function readKnown(target: string): Known[] {
  const file = join(import.meta.dir, "targets", target, "known.json");
  return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Known[]) : [];
}

export function newFindings(findings: readonly Finding[], known: readonly Known[]): Finding[] {
  return findings.filter(({ verdict }) => !known.some((entry) => entry.verdict === verdict));
}
