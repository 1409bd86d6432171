/**
 * Rules between the fields of a body. The first violation in document order is reported. A rule that JSON Schema can
 * express is declared once, as a Relation with a schema and with rules. The contract publishes the schema. The
 * validator checks the rules, which explain a violation better than a schema can. test/core/http/accepted.test.ts
 * compares the two.
 */
import { isGiven } from "./json.ts";
import { type Violation, violationFault } from "./violation.ts";

/**
 * Returns the violation of the body, or null. In the document order of violations, the violation counts as being at the
 * rule's field.
 */
export type Rule<Body> = (body: Body) => Violation | null;
export type Rules<Body> = readonly [field: keyof Body & string, rule: Rule<Body>][];

/** Returns the body if it breaks no rule. Throws the fault of the violation that comes first in the body. */
export function obeying<Body extends object>(body: Body, rules: Rules<Body>): Body {
  let first: Violation | null = null;
  let position = Number.POSITIVE_INFINITY;
  for (const [field, rule] of rules) {
    const violation = isGiven(body[field]) ? rule(body) : null;
    if (!violation) continue;
    const at = Object.keys(body).indexOf(field);
    if (at >= position) continue;
    first = violation;
    position = at;
  }
  if (first) throw violationFault(first);
  return body;
}

// ---- rules that the contract publishes -------------------------------------------------------------------------------

/**
 * A rule about a field, in two forms: as a schema, and as rules for the validator. `schema` applies to the whole
 * object, if the object has `field`, even with the value null.
 */
export interface Relation<Field extends string> {
  field: Field;
  schema: Readonly<Record<string, unknown>>;
  rules: Rules<Partial<Record<Field, unknown>>>;
}

/** A relation: `field` may be given only with `other`, or only if `other` is `value`. */
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
          const isMet = value === undefined ? isGiven(body[other]) : body[other] === value;
          return isMet ? null : { code: "invalid_value", param: field, message };
        },
      ],
    ],
  };
}

/**
 * A relation: at most one of the two fields may be given. The violation is reported at the field that comes second in
 * the body.
 */
export function excludes<Field extends string>(older: Field, newer: Field): Relation<Field> {
  const later = (field: Field, other: Field): Rule<Partial<Record<Field, unknown>>> => {
    const message = `'${field}' and '${other}' cannot be combined. Send only one of them ('${newer}' is the newer name).`;
    return (body) => {
      if (!isGiven(body[other])) return null;
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

/**
 * A relation: `schema` applies to each item of the array `field`. The schema validator itself explains violations, so
 * there is no rule.
 */
export function eachItem<Field extends string>(field: Field, schema: object): Relation<Field> {
  return { field, schema: { properties: { [field]: { items: schema } } }, rules: [] };
}

/** The schema by which every value that fits `condition` must also fit `schema`. */
export function when(condition: object, schema: object) {
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  return { if: condition, then: schema };
}

/** The schema of an object in which this field has a value other than null. */
export const present = (field: string) => ({
  properties: { [field]: { not: { type: "null" } } },
  required: [field],
});

const absent = (field: string) => ({ properties: { [field]: { type: "null" } } });

export function rulesOf<Field extends string>(relations: readonly Relation<Field>[]) {
  return relations.flatMap(({ rules }) => rules) satisfies Rules<Partial<Record<Field, unknown>>>;
}

/**
 * The schemas of these relations, for the contract. Generators of clients ignore `dependentSchemas`, whereas an `allOf`
 * or a `oneOf` would change the types that they write.
 */
export function published(relations: readonly Relation<string>[]) {
  return { dependentSchemas: Object.fromEntries(relations.map(({ field, schema }) => [field, schema])) };
}
