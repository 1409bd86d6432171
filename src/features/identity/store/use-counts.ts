/**
 * Counts how often a value was used in a span of time that begins with its first use. Only a hash of the value is
 * stored.
 */
export interface UseCounts {
  /**
   * Counts a use of the value, and returns the number of its uses, including this use. `about`: the kind of value;
   * equal values of different kinds are counted separately.
   */
  count(about: string, value: string, lasts_ms: number): Promise<number>;
  uncount(about: string, value: string): Promise<void>;
  counted(about: string, value: string): Promise<number>;
  forget(): Promise<number>;
}

/** Counts a use of the value, and returns whether it is the first use. */
export async function isFirst(uses: UseCounts, about: string, value: string, lasts_ms: number): Promise<boolean> {
  return (await uses.count(about, value, lasts_ms)) === 1;
}
