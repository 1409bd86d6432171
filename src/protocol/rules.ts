/** What a body must be beyond its shape: rules between fields, of which the first broken one in document order is told. */
import type { Violation } from "./violation.ts";

/** A rule: null, or what breaks it at the field that it stands under. */
export type Rule<Body> = (body: Body) => Violation | null;
export type Rules<Body> = readonly [field: keyof Body & string, rule: Rule<Body>][];

/** A rule is asked only where its field is given. */
export function firstBrokenRule<Body extends object>(body: Body, rules: Rules<Body>): Violation | null {
  let first: Violation | null = null;
  let position = Number.POSITIVE_INFINITY;
  let keys: string[] | null = null;
  for (const [field, rule] of rules) {
    if (!given(body[field])) continue;
    const violation = rule(body);
    if (!violation) continue;
    keys ??= Object.keys(body);
    const at = keys.indexOf(field);
    if (at < position) [first, position] = [violation, at];
  }
  return first;
}

/** An explicit null equals absent. */
export function given(value: unknown): boolean {
  return value !== undefined && value !== null;
}
