// Draws mutants, tries them, and shows which survived.

import { readFileSync } from "node:fs";
import Table from "cli-table3";
import type { Tree } from "../../test/house/source.ts";
import { mutants } from "../../test/mutants/all.ts";
import { equivalents } from "../../test/mutants/equivalents.ts";
import { named } from "../../test/mutants/mutant.ts";
import type { Finding, Laboratory } from "../laboratory.ts";
import { compiler } from "./compiler.ts";
import { drawn, moduleOf, shuffled } from "./draw.ts";
import { type Site, sitesOf } from "./sites.ts";
import { applied } from "./source.ts";
import { sqlSitesOf } from "./sql.ts";
import { testsOf } from "./tests-of.ts";

export interface DrawOptions {
  count: number;
  seed: number;
  /** Names of modules, or ends of files' names; none means all. */
  modules: readonly string[];
  /** Parts of identities; none means all. */
  only: readonly string[];
  within_ms: number;
}

export interface Tried {
  site: Site;
  finding: Finding;
}

/** Prints each finding when it is made, and the change of each survivor as a diff. */
export async function tryDrawn(
  lab: Laboratory,
  options: DrawOptions,
  inParallel: <T>(all: readonly T[], work: (one: T, worker: number) => Promise<unknown>) => Promise<void>,
): Promise<Tried[]> {
  const sources = productOf();
  const sites = await chosenSites(sources, options);
  const tree = treeOf(sources);
  const declared = named(mutants).map(({ mutant }) => mutant);
  const until_ms = performance.now() + options.within_ms;
  const results: Tried[] = [];
  await inParallel(sites, async (site, worker) => {
    if (performance.now() >= until_ms) return;
    const text = sources.get(site.file)!;
    const finding = await lab.tried(site.file, applied(text, site.change), testsOf(site.file, tree, declared), worker);
    results.push({ site, finding });
    console.log(`${finding.kind.padEnd(9)} ${site.id} [${finding.why}]`);
    if (finding.kind === "survived") console.log(difference(text, site));
  });
  return results;
}

/** Draws evenly over the modules, without mutants that the compiler refuses or that are listed as equivalent. */
async function chosenSites(sources: Tree, { count, seed, modules, only }: DrawOptions): Promise<Site[]> {
  await using types = await compiler(process.cwd());
  const all: Site[] = [];
  const names = new Set([...sources.keys()].map(moduleOf));
  for (const [path, text] of sources) {
    if (modules.length > 0 && !modules.some((word) => isMeant(path, word, names))) continue;
    all.push(...(path.endsWith(".sql") ? sqlSitesOf(path, text) : sitesOf(path, await types.tree(path), text)));
  }
  const ids = new Set(all.map(({ id }) => id));
  const stale = Object.keys(equivalents).filter((id) => sources.has(id.split(", ")[0]!) && !ids.has(id));
  if (modules.length === 0) for (const id of stale) console.log(`stale     ${id} [there is no such mutant any more]`);
  const wanted = all.filter(({ id }) => only.length === 0 || only.some((part) => id.includes(part)));
  const textOf = ({ file, change }: Site) => applied(sources.get(file)!, change);
  const chosen = await drawn(shuffled(wanted, seed), count, async (batch) => {
    const meant = batch.filter(({ id }) => !(id in equivalents));
    const compiled = meant.filter(({ file }) => file.endsWith(".ts"));
    const files = await types.takes(new Map(compiled.map((site) => [site.file, textOf(site)])));
    return meant.filter(({ file }) => file.endsWith(".sql") || files.has(file));
  });
  console.log(`${all.length} mutants in ${sources.size} files; ${chosen.length} drawn with seed ${seed}.`);
  return chosen;
}

/** The word is the name of a module, or the end of the name of a file. */
function isMeant(path: string, word: string, names: ReadonlySet<string>): boolean {
  return names.has(word) ? moduleOf(path) === word : path.includes(`${word}.`);
}

/** The product: its TypeScript and its SQL functions. */
function productOf(): Tree {
  const paths = ["src/**/*.ts", "db/*.ts", "db/migrations/*.sql"].flatMap((pattern) => [
    ...new Bun.Glob(pattern).scanSync("."),
  ]);
  return new Map(
    paths
      .filter((path) => !path.endsWith(".d.ts"))
      .sort()
      .map((path) => [path, readFileSync(path, "utf8")]),
  );
}

function treeOf(sources: Tree): Tree {
  const tests = [...new Bun.Glob("test/**/*.ts").scanSync(".")];
  return new Map([...sources, ...tests.map((path) => [path, readFileSync(path, "utf8")] as const)]);
}

function difference(text: string, { file, change }: Site): string {
  const from = text.lastIndexOf("\n", change.start - 1) + 1;
  const after = text.indexOf("\n", change.end);
  const to = after < 0 ? text.length : after;
  const line = text.slice(0, from).split("\n").length;
  const marked = (mark: string, lines: string) => lines.replaceAll(/^/gm, `    ${mark} `);
  const before = text.slice(from, to);
  const replaced = text.slice(from, change.start) + change.text + text.slice(change.end, to);
  return `    ${file}:${line}\n${marked("-", before)}\n${marked("+", replaced)}`;
}

/** Prints a table by module. A mutant is "not tried" if its migration could not even be applied. */
export function reportDrawn(results: readonly Tried[]): void {
  const table = new Table({
    head: ["module", "drawn", "caught", "survived", "not tried"],
    style: { head: [], border: [] },
  });
  const byModule = Map.groupBy(results, ({ site }) => moduleOf(site.file));
  const count = (some: readonly Tried[], kind: Finding["kind"]) =>
    some.filter(({ finding }) => finding.kind === kind).length;
  const rowOf = (name: string, some: readonly Tried[]) => [
    name,
    some.length,
    count(some, "caught"),
    count(some, "survived"),
    count(some, "invalid"),
  ];
  for (const [module, some] of [...byModule].sort(([a], [b]) => (a < b ? -1 : 1))) table.push(rowOf(module, some));
  table.push(rowOf("all", results));
  console.log(table.toString());
  console.log(`${Object.keys(equivalents).length} are listed as equivalent (test/mutants/equivalents.ts).`);
}
