// Prints the result of a run of drawn mutants.

import Table from "cli-table3";
import { equivalents } from "../../test/mutants/equivalents.ts";
import type { Finding } from "../laboratory.ts";
import { moduleOf } from "./draw.ts";
import type { Site } from "./sites.ts";

export interface Tried {
  site: Site;
  /** The result of the trial. Null: there was no time to try the mutant. */
  finding: Finding | null;
}

/** The change as a diff of the lines that it touches. */
export function difference(text: string, { file, change }: Site): string {
  const from = text.lastIndexOf("\n", change.start - 1) + 1;
  const after = text.indexOf("\n", change.end);
  const to = after < 0 ? text.length : after;
  const line = text.slice(0, from).split("\n").length;
  const marked = (mark: string, lines: string) => lines.replaceAll(/^/gm, `    ${mark} `);
  const before = text.slice(from, to);
  const replaced = text.slice(from, change.start) + change.text + text.slice(change.end, to);
  return `    ${file}:${line}\n${marked("-", before)}\n${marked("+", replaced)}`;
}

/** Prints a table by module. A mutant is invalid if the migration with it could not be applied. */
export function reportDrawn(results: readonly Tried[]): void {
  const table = new Table({
    head: ["module", "drawn", "caught", "survived", "invalid", "not tried"],
    style: { head: [], border: [] },
  });
  const count = (some: readonly Tried[], kind: Finding["kind"] | undefined) =>
    some.filter(({ finding }) => finding?.kind === kind).length;
  const rowOf = (name: string, some: readonly Tried[]) => [
    name,
    some.length,
    count(some, "caught"),
    count(some, "survived"),
    count(some, "invalid"),
    count(some, undefined),
  ];
  const byModule = Map.groupBy(results, ({ site }) => moduleOf(site.file));
  for (const [module, some] of [...byModule].sort(([a], [b]) => (a < b ? -1 : 1))) table.push(rowOf(module, some));
  table.push(rowOf("all", results));
  console.log(table.toString());
  console.log(`${Object.keys(equivalents).length} are listed as equivalent (test/mutants/equivalents.ts).`);
}
