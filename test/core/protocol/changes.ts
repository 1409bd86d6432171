/** Bad input, by mutation: valid bodies with random changes. */
import fc from "fast-check";

type Path = (string | number)[];
type Change = { kind: "replace"; by: unknown } | { kind: "remove" } | { kind: "add"; key: string; by: unknown };

/**
 * One to three changes of a body, anywhere in it. `words` are values with a meaning in the body's protocol, `keys` the
 * names of members that a change may add.
 */
export function changesTo(valid: object, { words, keys }: { words: string[]; keys: string[] }): fc.Arbitrary<unknown> {
  const by = fc.oneof(fc.jsonValue({ maxDepth: 3 }), fc.constantFrom(...words, "", 0, 1, 2, -1, 1.5, 1e300));
  const change: fc.Arbitrary<Change> = fc.oneof(
    fc.record({ kind: fc.constant("replace" as const), by }),
    fc.record({ kind: fc.constant("remove" as const) }),
    fc.record({ kind: fc.constant("add" as const), key: fc.constantFrom(...keys), by }),
  );
  return (
    fc
      .array(fc.tuple(fc.nat(), change), { minLength: 1, maxLength: 3 })
      .map((changes) => changes.reduce((body: unknown, [at, how]) => changed(body, pick(places(body), at), how), valid))
      // Makes the body as it would arrive: JSON has no holes in arrays and no 1e400.
      .map((body) => JSON.parse(JSON.stringify(body)))
  );
}

const pick = <Item>(list: Item[], at: number): Item => list[at % list.length]!;

/** The paths of all values within a JSON value. */
function places(value: unknown, path: Path = []): Path[] {
  const inner = value !== null && typeof value === "object" ? Object.entries(value) : [];
  const step = (key: string) => (Array.isArray(value) ? Number(key) : key);
  return [path, ...inner.flatMap(([key, child]) => places(child, [...path, step(key)]))];
}

function changed(value: unknown, path: Path, change: Change): unknown {
  const [step, ...rest] = path;
  if (step === undefined) return change.kind === "replace" ? change.by : value;
  const copy = (Array.isArray(value) ? [...value] : { ...(value as object) }) as Record<string | number, unknown>;
  if (rest.length === 0 && change.kind === "remove") delete copy[step];
  else if (rest.length === 0 && change.kind === "add") copy[change.key] = change.by;
  else copy[step] = changed(copy[step], rest, change);
  return copy;
}
