/**
 * Makes a function that looks things up by their names. One query serves all calls of one turn of the event loop, and
 * contains each name once. Nothing is cached: a later call is looked up anew.
 */
export function batched<Asked, Found>(
  nameOf: (asked: Asked) => string,
  look: (asked: Asked[]) => Promise<ReadonlyMap<string, Found>>,
): (asked: Asked) => Promise<Found | null> {
  let due: { asked: Map<string, Asked>; found: Promise<ReadonlyMap<string, Found>> } | null = null;

  function begun() {
    const asked = new Map<string, Asked>();
    const { promise: found, resolve } = Promise.withResolvers<ReadonlyMap<string, Found>>();
    setImmediate(() => {
      due = null;
      resolve(look([...asked.values()]));
    });
    return { asked, found };
  }

  return async (asked) => {
    due ??= begun();
    const name = nameOf(asked);
    due.asked.set(name, asked);
    return (await due.found).get(name) ?? null;
  };
}
