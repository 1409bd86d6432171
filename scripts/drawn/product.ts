// The product as mutants see it: its TypeScript and its SQL functions, with every mutant and every part.

import { readFileSync } from "node:fs";
import type { Tree } from "../../test/house/source.ts";
import type { Compiler } from "./compiler.ts";
import { type Part, partOf, partsOf } from "./parts.ts";
import { type Site, sitesOf } from "./sites.ts";
import { sqlSitesOf } from "./sql.ts";
import { SqlFunctions } from "./sql-functions.ts";
import type { Place } from "./test-runs.ts";

export interface Product {
  sources: Tree;
  sites: readonly Site[];
  parts: ReadonlyMap<string, readonly Part[]>;
  /** The parts of which one must run for a test to notice the mutant; null if that can't be told. */
  placeOf(site: Site): Place | null;
}

export async function productOf(types: Compiler): Promise<Product> {
  const sources = sourcesOf();
  const functions = new SqlFunctions(sources);
  const parts = new Map<string, Part[]>();
  const sites: Site[] = [];
  for (const [path, text] of sources) {
    if (path.endsWith(".sql")) {
      sites.push(...sqlSitesOf(path, text).filter(({ id }) => functions.isNewest(functionOf(id), path)));
      continue;
    }
    const file = await types.tree(path);
    sites.push(...sitesOf(path, file, text));
    parts.set(path, partsOf(file, text));
  }
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

function sourcesOf(): Tree {
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

/** `usage_admit` of `db/migrations/0030_a.sql, usage_admit: boundary shifted 1`. */
function functionOf(id: string): string {
  return id.slice(id.indexOf(", ") + 2, id.indexOf(": "));
}
