// Finds the tests that must notice a mutant of a file: those of its module, and others that import the file. Pure.

import { importsOf, resolved, type Tree } from "../../test/house/source.ts";
import type { Mutant } from "../../test/mutants/mutant.ts";
import { moduleOf } from "./draw.ts";

/**
 * Test files, the likeliest first: those that declared mutants of the file name, then by imports; tests of nodes last. If
 * the module has none that come to the file, those of other modules that do.
 */
export function testsOf(file: string, tree: Tree, declared: readonly Mutant[], files_max = 14): string[] {
  const tests = [...tree.keys()].filter((path) => path.startsWith("test/") && path.endsWith(".test.ts"));
  const module = moduleOf(file);
  const named = declared.filter((one) => one.file === file).flatMap(({ caughtBy }) => caughtBy.map(fileOf));
  const all = tests.flatMap((test) => {
    const { distance, startsNode } = pathTo(test, file, tree);
    const isOwn = foldersOf(module).some((folder) => test.startsWith(`test/${folder}/`));
    const isNamed = named.includes(test);
    const canNotice = isNamed || startsNode || distance < Number.POSITIVE_INFINITY || module === "sql";
    if (!canNotice) return [];
    const isNear = isNamed || isOwn || distance === 1;
    const rank = [!isNamed, startsNode, !isNamesake(test, file), distance, -mentions(tree.get(test)!, file)];
    return [{ test, isNear, distance, rank: rank.map(Number) }];
  });
  const near = all.filter(({ isNear }) => isNear);
  const rows = near.length > 0 ? near : all.filter(({ distance }) => distance !== Number.POSITIVE_INFINITY);
  rows.sort((a, b) => compared(a.rank, b.rank));
  // The embedded database runs the same SQL, and takes longer to begin.
  const onPostgres = (test: string) =>
    module === "sql" && test.startsWith("test/store/") && /"postgres"[,\]]/.test(tree.get(test)!)
      ? `${test} > postgres`
      : test;
  return rows.slice(0, files_max).map(({ test }) => onPostgres(test));
}

/** The folders of a module's tests, mostly the one of its name. */
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
    case "api":
    case "body":
    case "node":
      return [module, "http"];
    default:
      return [module];
  }
}

function fileOf(test: string): string {
  return test.split(" > ")[0]!;
}

function isNamesake(test: string, file: string): boolean {
  const stem = (path: string) => path.split("/").at(-1)!.split(".")[0];
  return stem(test) === stem(file);
}

/** How often a test has the name of the file, which is often that of an operation or a feature. */
function mentions(text: string, file: string): number {
  const stem = file.split("/").at(-1)!.split(".")[0]!;
  return text.match(new RegExp(stem.replaceAll(/[-_]/g, "[-_ ]?"), "gi"))?.length ?? 0;
}

/** How many imports lead from a test to the file, and whether the test starts whole nodes. */
function pathTo(test: string, file: string, tree: Tree): { distance: number; startsNode: boolean } {
  let distance = Number.POSITIVE_INFINITY;
  let startsNode = false;
  const seen = new Set([test]);
  let level = [test];
  for (let depth = 1; level.length > 0; depth++) {
    const next: string[] = [];
    for (const path of level) {
      for (const target of neighbours(path, tree)) {
        if (target === file) distance = Math.min(distance, depth);
        if (/^test\/harness\/(sluice|daemon|cluster)\.ts$/.test(target)) startsNode = true;
        if (seen.has(target)) continue;
        seen.add(target);
        next.push(target);
      }
    }
    level = next;
  }
  return { distance, startsNode };
}

const known = new WeakMap<Tree, Map<string, string[]>>();

function neighbours(path: string, tree: Tree): string[] {
  const all = known.get(tree) ?? new Map<string, string[]>();
  known.set(tree, all);
  const found =
    all.get(path) ??
    importsOf(tree.get(path) ?? "")
      .map(({ target }) => resolved(path, target))
      .filter((target) => target !== null);
  all.set(path, found);
  return found;
}

function compared(a: readonly number[], b: readonly number[]): number {
  const at = a.findIndex((value, index) => value !== b[index]);
  return at < 0 ? 0 : a[at]! - b[at]!;
}
