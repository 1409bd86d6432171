/** How often something was used in a span that begins with its first use. Nothing of it is stored but a hash. */
export interface UseCounts {
  /** Counts a use, and returns how many there are with it. `about` names what it is, so that two kinds never meet. */
  count(about: string, value: string, lasts_ms: number): Promise<number>;
  /** Takes a use back. */
  uncount(about: string, value: string): Promise<void>;
  /** How many uses there are, without a further one. */
  counted(about: string, value: string): Promise<number>;
  forget(): Promise<number>;
}

/** Whether this is the first use. */
export async function isFirst(uses: UseCounts, about: string, value: string, lasts_ms: number): Promise<boolean> {
  return (await uses.count(about, value, lasts_ms)) === 1;
}
