/** Valid bodies in which one value was replaced, removed, repeated or moved. */
import fc from "fast-check";

/** The position of the change, the kind of the change, and the value for a replacement. */
export type Change = [at: number, how: number, other: unknown];

export const change: fc.Arbitrary<Change> = fc.tuple(
  fc.nat(),
  fc.nat(3),
  fc.oneof(
    fc.constantFrom<unknown>(null, 0, -1, "", "x", "tool", "user", "slk_", "\u0000", "__proto__", true, [], {}, [{}]),
    fc.constantFrom<unknown>({ type: "text", text: "x" }, Number.MAX_VALUE, Number.POSITIVE_INFINITY),
    fc.jsonValue({ maxDepth: 2 }),
  ),
);

/** The text of a body with a change. */
export function changed(text: string, [at, how, other]: Change): string {
  const body = JSON.parse(text) as Record<string, unknown>;
  const places: [Record<string, unknown>, string][] = [];
  const visit = (value: unknown) => {
    if (typeof value !== "object" || value === null) return;
    for (const [key, inner] of Object.entries(value)) {
      places.push([value as Record<string, unknown>, key]);
      visit(inner);
    }
  };
  visit(body);
  if (places.length === 0) return text;
  const [inside, key] = places[at % places.length]!;
  if (how === 0) inside[key] = other;
  else if (how === 1 && Array.isArray(inside)) inside.splice(Number(key), 1);
  else if (how === 1) delete inside[key];
  else if (Array.isArray(inside)) inside.splice(Number(key), 0, how === 2 ? inside[Number(key)] : inside.at(-1));
  else inside[`${key}_`] = other;
  return JSON.stringify(body);
}
