// Finds the tests that should notice a mutant of a file: those of its module, and others that import the file. Pure.

import { importsOf, resolved, type Tree } from "../../test/house/source.ts";
import { fileOf, type Mutant } from "../../test/mutants/mutant.ts";
import { moduleOf } from "./draw.ts";

/** A test file that could notice the mutant. A `long` one is run only if no other test runs the mutated part. */
export interface Possible {
  test: string;
  isLong: boolean;
}

/**
 * Returns test files, the most likely to notice first:
 * - those that declared mutants of the file name, those of the file's module, and those that import the file;
 * - the `long` ones among these, unless declared mutants name them;
 * - others that import the file indirectly.
 *
 * Within each group, those that declared mutants name come first, then tests with the file's name. Tests that start
 * nodes come last, and otherwise files with fewer imports on the way come first.
 */
export function testsOf(
  file: string,
  tree: Tree,
  declared: readonly Mutant[],
  long: ReadonlySet<string> = new Set(),
): Possible[] {
  const tests = [...tree.keys()].filter((path) => path.startsWith("test/") && path.endsWith(".test.ts"));
  const module = moduleOf(file);
  const named = declared.filter((one) => one.file === file).flatMap(({ caughtBy }) => caughtBy.map(fileOf));
  const distances = distancesTo([file], tree);
  const nodes = distancesTo(nodeStarters, tree);
  const all = tests.flatMap((test) => {
    const distance = distances.get(test) ?? Number.POSITIVE_INFINITY;
    const startsNode = nodes.has(test);
    const isOwn = foldersOf(module).some((folder) => test.includes(`/${folder}/`));
    const isNamed = named.includes(test);
    const canNotice = isNamed || startsNode || distance < Number.POSITIVE_INFINITY || module === "sql";
    if (!canNotice) return [];
    const isNear = isNamed || isOwn || distance === 1;
    const rank = [!isNamed, !isNamesake(test, file), startsNode, distance, -mentions(tree.get(test)!, file)];
    const isLong = !isNamed && long.has(test);
    return isLong && !isNear ? [] : [{ test, isLong, rank: [!isNear, isLong, ...rank].map(Number) }];
  });
  return all.sort((a, b) => compared(a.rank, b.rank));
}

/** A test file and the helpers in `test` that it imports, directly or indirectly. */
export function closureOf(test: string, tree: Tree): string[] {
  const found = new Set([test]);
  for (const path of found)
    for (const target of graphOf(tree).imports.get(path) ?? [])
      if (target.startsWith("test/") && tree.has(target)) found.add(target);
  return [...found].sort();
}

/** The test helpers that start whole nodes. */
const nodeStarters = ["sluice", "daemon", "cluster"].map((name) => `test/harness/${name}.ts`);

/** The folders with a module's tests, usually one with the module's name. */
function foldersOf(module: string): readonly string[] {
  switch (module) {
    case "sql":
      return ["store", "postgres"];
    case "postgres":
    case "memory":
    case "redis":
      return [module, "store"];
    case "routing":
      return [module, "failover"];
    case "db":
      return ["postgres"];
    case "cli":
      return [module, "identity", "http"];
    case "management":
    case "config":
      return [module, "cli", "http"];
    case "operations":
    case "responses":
    case "openapi":
    case "people":
    case "body":
    case "node":
      return [module, "http"];
    default:
      return [module];
  }
}

function isNamesake(test: string, file: string): boolean {
  const stem = (path: string) => path.split("/").at(-1)!.split(".")[0];
  return stem(test) === stem(file);
}

/** How often a test mentions the name of the file, which is often the name of an operation or a feature. */
function mentions(text: string, file: string): number {
  const stem = file.split("/").at(-1)!.split(".")[0]!;
  return text.match(new RegExp(stem.replaceAll(/[-_]/g, "[-_ ]?"), "gi"))?.length ?? 0;
}

/**
 * The number of imports from each file to the nearest of these files, for all files that import them directly or
 * indirectly.
 */
function distancesTo(files: readonly string[], tree: Tree): Map<string, number> {
  const importers = graphOf(tree).importers;
  const found = new Map(files.map((file) => [file, 0]));
  for (const [path, distance] of found)
    for (const importer of importers.get(path) ?? []) if (!found.has(importer)) found.set(importer, distance + 1);
  return found;
}

interface Graph {
  imports: ReadonlyMap<string, readonly string[]>;
  importers: ReadonlyMap<string, readonly string[]>;
}

const graphs = new WeakMap<Tree, Graph>();

function graphOf(tree: Tree): Graph {
  const known = graphs.get(tree);
  if (known !== undefined) return known;
  const imports = new Map<string, string[]>();
  const importers = new Map<string, string[]>();
  for (const [path, text] of tree) {
    const targets = path.endsWith(".ts") ? importsOf(text).map(({ target }) => resolved(path, target)) : [];
    imports.set(
      path,
      targets.filter((target) => target !== null),
    );
    for (const target of imports.get(path)!) importers.set(target, [...(importers.get(target) ?? []), path]);
  }
  const graph = { imports, importers };
  graphs.set(tree, graph);
  return graph;
}

function compared(a: readonly number[], b: readonly number[]): number {
  const at = a.findIndex((value, index) => value !== b[index]);
  return at < 0 ? 0 : a[at]! - b[at]!;
}
