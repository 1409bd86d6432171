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

/** The number of names that Postgres assumes of an array whose length it does not know. */
const assumed = 10;
const sizes = [1, 4, assumed] as const;

/**
 * Makes a look-up of any number of names from statements for 1, 4 and 10, filled up with names that they have already,
 * and one that takes an array of more. If an array had fewer names than Postgres assumes of any array, the plan for its
 * length would always seem cheaper, and would be made anew at each run. A look-up of keys joins eleven tables, and to
 * plan it takes 1 ms, more than the rest of a request.
 */
export function inSizes<Asked, Row>(
  few: (size: number) => (asked: readonly Asked[]) => PromiseLike<Row[]>,
  many: (asked: readonly Asked[]) => PromiseLike<Row[]>,
): (asked: readonly Asked[]) => PromiseLike<Row[]> {
  const statements = sizes.map((size) => ({ size, run: few(size) }));
  return (asked) => {
    const statement = statements.find(({ size }) => size >= asked.length);
    if (!statement) return many(asked);
    const { size, run } = statement;
    return run([...asked, ...Array<Asked>(size - asked.length).fill(asked[0]!)]);
  };
}
