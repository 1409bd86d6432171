/**
 * The warning for a fleet of several processes without a common store of the limits per minute: each process enforces
 * its share of them. Pure.
 */

/** The text of the warning. Null: there is only one process, which enforces each limit in full. */
export function ratesInShares(processes: number): string | null {
  if (processes <= 1) return null;
  return `each of the ${processes} processes of the fleet counts its share of the limits a minute by itself, so they may be missed by a factor of up to ${processes} either way`;
}
