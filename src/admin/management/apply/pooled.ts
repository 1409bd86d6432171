/** Calls an asynchronous function for many items, a few at a time. */

/** The most concurrent calls: more would not make the node faster, and its other clients would wait longer. */
const atOnce_max = 8;

/**
 * Calls the function for each item. After a failure no other item is begun; the failure is thrown when the items that
 * were begun are done.
 */
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
