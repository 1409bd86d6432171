// Draws the mutants to try: equally many of each module, in an order that the seed determines. Pure.

import type { Site } from "./sites.ts";

/**
 * The module of a file: `usage` for `src/core/usage/run.ts`, `node` for files directly in src, `sql` for migrations.
 */
export function moduleOf(file: string): string {
  if (file.endsWith(".sql")) return "sql";
  const [top = "", group = "", module = ""] = file.split("/");
  if (top !== "src") return top;
  if (group.includes(".")) return "node";
  return module.includes(".") || !groups.includes(group) ? group : module;
}

const groups = ["core", "features", "admin", "stores"];

/**
 * The mutants of each module in random order by the seed. The order of two mutants does not depend on the other
 * mutants.
 */
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
 * Draws `count` mutants, equally many of each module. A mutant that `taken` rejects, or that changes the same text as
 * another, is replaced by the module's next one. A batch has at most one mutant of each file.
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

/** Removes from `waiting` as many mutants of each module as its share still lacks, and returns them. */
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
