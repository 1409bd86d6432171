/** Work on many things, some of them at a time. */

/** A node answers no faster if more wait, and other clients of it wait longer. */
const atOnce_max = 8;

/** Does the work on each item. After a failure none is begun; it is thrown when the others have ended. */
export async function pooled<Item, Result>(
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const failures: unknown[] = [];
  let next = 0;
  async function worker(): Promise<void> {
    while (next < items.length && failures.length === 0) {
      const index = next++;
      try {
        results[index] = await work(items[index]!);
      } catch (cause) {
        failures.push(cause);
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(atOnce_max, items.length) }, worker));
  if (failures.length > 0) throw failures[0];
  return results;
}
