/**
 * Makes a look-up of names that answers all questions of one turn of the event loop with one query, which has each name
 * once. Nothing is kept: a later question is looked up anew.
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

const sizes = [1, 4, 16, 64] as const;

/**
 * Makes a look-up of any number of names from statements for 1, 4, 16 and 64, filled up with names that they have already.
 * If the number of names were that of an array, Postgres would plan the statement anew for each run: it takes an array
 * of unknown length for ten names, so the plan for the one or two of a turn always seems cheaper. A look-up of keys
 * joins eleven tables, and to plan it takes 1 ms, more than the rest of a request.
 */
export function inSizes<Asked, Row>(
  statementFor: (size: number) => (asked: readonly Asked[]) => PromiseLike<Row[]>,
): (asked: readonly Asked[]) => Promise<Row[]> {
  const statements = sizes.map((size) => ({ size, run: statementFor(size) }));
  const [largest] = sizes.slice(-1) as [number];
  return async (asked) => {
    const found: PromiseLike<Row[]>[] = [];
    for (let from = 0; from < asked.length; from += largest) {
      const some = asked.slice(from, from + largest);
      const { size, run } = statements.find((one) => one.size >= some.length)!;
      found.push(run([...some, ...Array<Asked>(size - some.length).fill(some[0]!)]));
    }
    return (await Promise.all(found)).flat();
  };
}
