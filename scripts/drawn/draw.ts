// Which mutants are drawn: as many of each module, in an order that the seed decides. Pure.

import type { Site } from "./sites.ts";

/** `usage` of `src/usage/run.ts`; `node` of what stands in src itself; `sql` of migrations. */
export function moduleOf(file: string): string {
  if (file.endsWith(".sql")) return "sql";
  const [top = "", second = ""] = file.split("/");
  if (top !== "src") return top;
  return second.includes(".") ? "node" : second;
}

/** Of each module its mutants, in their order. One seed gives the same order, whatever mutants come and go beside them. */
export function shuffled(sites: readonly Site[], seed: number): Map<string, Site[]> {
  const ordered = sites
    .map((site) => ({ site, order: Bun.hash(site.id, BigInt(seed)) as bigint }))
    .sort((a, b) => (a.order < b.order ? -1 : 1));
  return Map.groupBy(
    ordered.map(({ site }) => site),
    ({ file }) => moduleOf(file),
  );
}

/**
 * So many, each module in its turn. A mutant that is not `taken`, or stands where another was
 * drawn, makes room for the next one of its module.
 */
export async function drawn(
  byModule: ReadonlyMap<string, readonly Site[]>,
  count: number,
  taken: (site: Site) => Promise<boolean>,
): Promise<Site[]> {
  const waiting = new Map([...byModule].map(([module, sites]) => [module, [...sites]]));
  const found: Site[] = [];
  const places = new Set<string>();
  const isFirst = ({ file, change }: Site) => !places.has(`${file} ${change.start} ${change.end}`);
  while (found.length < count && waiting.size > 0) {
    for (const [module, sites] of waiting) {
      let next = sites.shift();
      while (next !== undefined && !(isFirst(next) && (await taken(next)))) next = sites.shift();
      if (next === undefined) waiting.delete(module);
      else if (found.length < count) {
        places.add(`${next.file} ${next.change.start} ${next.change.end}`);
        found.push(next);
      }
    }
  }
  return found;
}
