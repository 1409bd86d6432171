/**
 * Counts how often a value was used in a span of time that begins with its first use. Only a hash of the value is
 * stored.
 */
export interface UseCounts {
  /**
   * Counts a use, and returns the number of uses, this one included. `about`: the kind of value, so that equal values
   * of two kinds differ.
   */
  count(about: string, value: string, lasts_ms: number): Promise<number>;
  /** Takes back a use that was counted. */
  uncount(about: string, value: string): Promise<void>;
  /** The number of uses so far. */
  counted(about: string, value: string): Promise<number>;
  forget(): Promise<number>;
}

/** Counts a use. Returns whether it is the first one. */
export async function isFirst(uses: UseCounts, about: string, value: string, lasts_ms: number): Promise<boolean> {
  return (await uses.count(about, value, lasts_ms)) === 1;
}
