/** The warning to operators while no store counts the limits per minute for all processes of a fleet. Pure. */

/** The warning in words. Null: there is only one process, so each limit counts in full. */
export function ratesInShares(processes: number): string | null {
  if (processes <= 1) return null;
  return `each of the ${processes} processes of the fleet counts its share of the limits a minute by itself, so they may be missed by a factor of up to ${processes} either way`;
}
