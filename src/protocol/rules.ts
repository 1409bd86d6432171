/**
 * What a body must be beyond the shape of its fields: rules between them, of which the first broken one in document order
 * is told. A rule that JSON Schema can state is declared once, as a Relation: the contract publishes its schema, and the
 * validator asks its rules, which say what is wrong better than a schema can. test/http/accepted.test.ts holds the two together.
 */
import { type Violation, violationFault } from "./violation.ts";

/** A rule: null, or what breaks it at the field that it stands under. */
export type Rule<Body> = (body: Body) => Violation | null;
export type Rules<Body> = readonly [field: keyof Body & string, rule: Rule<Body>][];

/** The body, if it breaks no rule. Throws the fault of the first rule that it breaks. */
export function obeying<Body extends object>(body: Body, rules: Rules<Body>): Body {
  const broken = firstBrokenRule(body, rules);
  if (broken) throw violationFault(broken);
  return body;
}

/** Asks only the rules whose field is given. */
function firstBrokenRule<Body extends object>(body: Body, rules: Rules<Body>): Violation | null {
  let first: Violation | null = null;
  let position = Number.POSITIVE_INFINITY;
  let keys: string[] | null = null;
  for (const [field, rule] of rules) {
    if (!given(body[field])) continue;
    const violation = rule(body);
    if (!violation) continue;
    keys ??= Object.keys(body);
    const at = keys.indexOf(field);
    if (at >= position) continue;
    first = violation;
    position = at;
  }
  return first;
}

/** An explicit null equals absent. */
export function given(value: unknown): boolean {
  return value !== undefined && value !== null;
}

// ---- rules that the contract publishes -------------------------------------------------------------------------------

/** `schema` holds for the whole object, wherever it has `field`, be it null. */
export interface Relation<Field extends string> {
  field: Field;
  schema: Readonly<Record<string, unknown>>;
  rules: Rules<Partial<Record<Field, unknown>>>;
}

/** `field` may be given only with `other`, or only where `other` is `value`. */
export function requires<Field extends string>(field: Field, other: Field, value?: unknown): Relation<Field> {
  const met = value === undefined ? present(other) : { properties: { [other]: { const: value } }, required: [other] };
  const [condition, remedy] = value === undefined ? [`'${other}'`, "Add"] : [`'${other}' to be ${value}`, "Set"];
  const message = `'${field}' requires ${condition}. ${remedy} '${other}', or remove '${field}'.`;
  return {
    field,
    schema: { anyOf: [absent(field), met] },
    rules: [
      [
        field,
        (body) => {
          const isMet = value === undefined ? given(body[other]) : body[other] === value;
          return isMet ? null : { code: "invalid_value", param: field, message };
        },
      ],
    ],
  };
}

/** At most one of the two is given. The offence is the one that was written second. */
export function excludes<Field extends string>(older: Field, newer: Field): Relation<Field> {
  const later = (field: Field, other: Field): Rule<Partial<Record<Field, unknown>>> => {
    const message = `'${field}' and '${other}' cannot be combined. Send only one of them ('${newer}' is the newer name).`;
    return (body) => {
      if (!given(body[other])) return null;
      const keys = Object.keys(body);
      if (keys.indexOf(field) < keys.indexOf(other)) return null;
      return { code: "mutually_exclusive", param: field, message };
    };
  };
  return {
    field: older,
    schema: { anyOf: [absent(older), absent(newer)] },
    rules: [
      [older, later(older, newer)],
      [newer, later(newer, older)],
    ],
  };
}

/** What more than its shape holds for each item of the array `field`; the validator's own rule tells what breaks it. */
export function eachItem<Field extends string>(field: Field, schema: object): Relation<Field> {
  return { field, schema: { properties: { [field]: { items: schema } } }, rules: [] };
}

/** `schema` holds for every value that fits `condition`. */
export function when(condition: object, schema: object) {
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  return { if: condition, then: schema };
}

/** A field that is there, and not null. */
export const present = (field: string) => ({
  properties: { [field]: { not: { type: "null" } } },
  required: [field],
});

const absent = (field: string) => ({ properties: { [field]: { type: "null" } } });

/** Relations as what is checked here. */
export function rulesOf<Field extends string>(relations: readonly Relation<Field>[]) {
  return relations.flatMap(({ rules }) => rules) satisfies Rules<Partial<Record<Field, unknown>>>;
}

/**
 * Relations as JSON Schema 2020-12. `dependentSchemas` is what generators of clients leave alone: an `allOf` or a `oneOf`
 * would change the types that they write.
 */
export function published(relations: readonly Relation<string>[]) {
  return { dependentSchemas: Object.fromEntries(relations.map(({ field, schema }) => [field, schema])) };
}
