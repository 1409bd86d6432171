/** A bar that shows how full a usage window is. Pure. */

/**
 * A bar of cells: first the cells for usage, then for amounts that running requests hold, then free cells. Any usage
 * fills at least one cell.
 */
export function bar(
  cells: number,
  { used, held, limit }: { used: number; held: number; limit: number | null },
): string {
  if (limit === null) return "·".repeat(cells);
  const upTo = (nanos: number) => Math.min(cells, Math.max(nanos > 0 ? 1 : 0, Math.floor((nanos / limit) * cells)));
  const full = upTo(used);
  const taken = Math.max(full, upTo(used + held));
  return "█".repeat(full) + "▒".repeat(taken - full) + "░".repeat(cells - taken);
}
