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
 * So many, of each module as many. A mutant that is not `taken`, or stands where another was drawn, makes room for the
 * next one of its module. A batch has one mutant of a file at most.
 */
export async function drawn(
  byModule: ReadonlyMap<string, readonly Site[]>,
  count: number,
  taken: (batch: readonly Site[]) => Promise<readonly Site[]>,
): Promise<Site[]> {
  const waiting = new Map([...byModule].map(([module, sites]) => [module, [...sites]]));
  const found: Site[] = [];
  while (found.length < count) {
    for (const [module, sites] of waiting) {
      const left = sites.filter((site) => !found.some((one) => isSamePlace(one, site)));
      if (left.length > 0) waiting.set(module, left);
      else waiting.delete(module);
    }
    if (waiting.size === 0) break;
    const batch = nextBatch(waiting, found, count);
    found.push(...(await taken(batch)).slice(0, count - found.length));
  }
  return found;
}

/** Takes them out of those that wait: of each module as many as bring it to its share. */
function nextBatch(waiting: ReadonlyMap<string, Site[]>, found: readonly Site[], count: number): Site[] {
  const files = new Set<string>();
  const counts = Map.groupBy(found, ({ file }) => moduleOf(file));
  const missing = count - found.length;
  const share = Math.ceil((found.filter(({ file }) => waiting.has(moduleOf(file))).length + missing) / waiting.size);
  return [...waiting].flatMap(([module, sites]) => {
    const batch: Site[] = [];
    const wanted = share - (counts.get(module)?.length ?? 0);
    for (let at = 0; at < sites.length && batch.length < wanted; at++) {
      const { file } = sites[at]!;
      if (files.has(file)) continue;
      files.add(file);
      batch.push(...sites.splice(at--, 1));
    }
    return batch;
  });
}

function isSamePlace(one: Site, other: Site): boolean {
  return one.file === other.file && one.change.start === other.change.start && one.change.end === other.change.end;
}
