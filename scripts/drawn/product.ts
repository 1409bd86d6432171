// The product's TypeScript files and SQL functions with all of their mutants, and with their parts (a function, or a
// statement outside of functions), for which it is recorded which tests run them.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Tree } from "../../test/house/source.ts";
import type { Compiler } from "./compiler.ts";
import { moduleOf } from "./draw.ts";
import { type Part, partOf, partsOf } from "./parts.ts";
import { type Site, sitesOf } from "./sites.ts";
import { sqlSitesOf } from "./sql.ts";
import { SqlFunctions } from "./sql-functions.ts";
import { hashOf, type Place } from "./test-runs.ts";

export interface Product {
  sources: Tree;
  /** The mutants of the requested files. */
  sites: readonly Site[];
  parts: ReadonlyMap<string, readonly Part[]>;
  /** The parts of which a test must run at least one in order to notice the mutant; null if that is not known. */
  placeOf(site: Site): Place | null;
}

/** Reads the product. The parts of files are cached in `folder`. */
export async function productOf(
  types: Compiler,
  folder: string,
  isWanted: (file: string, modules: ReadonlySet<string>) => boolean,
): Promise<Product> {
  const sources = sourcesOf();
  const functions = new SqlFunctions(sources);
  const modules = new Set([...sources.keys()].map(moduleOf));
  const sites: Site[] = [];
  for (const [path, text] of sources) {
    if (!isWanted(path, modules)) continue;
    if (path.endsWith(".ts")) sites.push(...sitesOf(path, await types.tree(path), text));
    else sites.push(...sqlSitesOf(path, text).filter(({ id }) => functions.isNewest(functionOf(id), path)));
  }
  const parts = await partsOfAll(types, sources, join(folder, "parts.json"));
  const partAt = (file: string, start: number) => partOf(parts.get(file)!, { start, end: start });
  return {
    sources,
    sites,
    parts,
    placeOf: ({ file, id, change }) =>
      file.endsWith(".sql")
        ? functions.callersOf(functionOf(id), partAt)
        : [{ file, part: partOf(parts.get(file)!, change) }],
  };
}

interface KeptParts {
  text: string;
  parts: Part[];
}

async function partsOfAll(types: Compiler, sources: Tree, path: string): Promise<Map<string, readonly Part[]>> {
  const known = existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as Record<string, KeptParts>) : {};
  const all: Record<string, KeptParts> = {};
  for (const [file, source] of sources) {
    if (!file.endsWith(".ts")) continue;
    const text = hashOf(source);
    const kept = known[file];
    all[file] = kept?.text === text ? kept : { text, parts: partsOf(await types.tree(file), source) };
  }
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, JSON.stringify(all));
  return new Map(Object.entries(all).map(([file, { parts }]) => [file, parts]));
}

function sourcesOf(): Tree {
  const paths = ["src/**/*.ts", "db/*.ts", "db/migrations/**/*.sql"].flatMap((pattern) => [
    ...new Bun.Glob(pattern).scanSync("."),
  ]);
  return new Map(
    paths
      .filter((path) => !path.endsWith(".d.ts"))
      .sort()
      .map((path) => [path, readFileSync(path, "utf8")]),
  );
}

/**
 * The function that the ID of a mutant names: `usage_admit` in `db/migrations/0030_a.sql, usage_admit: boundary shifted
 * 1`.
 */
function functionOf(id: string): string {
  return id.slice(id.indexOf(", ") + 2, id.indexOf(": "));
}
