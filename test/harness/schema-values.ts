/**
 * Generates random JSON values that fit a JSON Schema of the contract, for property tests. The generator follows the
 * keywords that describe a value's structure. The other keywords (`dependentSchemas`, `if`, `not`) are left to a
 * validator, which discards the values that do not fit.
 */
import fc from "fast-check";

export interface Schema {
  $ref?: string;
  type?: string | string[];
  const?: unknown;
  enum?: unknown[];
  anyOf?: Schema[];
  properties?: Record<string, Schema>;
  required?: string[];
  dependentSchemas?: Record<string, unknown>;
  additionalProperties?: boolean | Schema;
  propertyNames?: Schema;
  items?: Schema;
  minItems?: number;
  maxItems?: number;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  minimum?: number;
  maximum?: number;
}

/**
 * Makes a generator of values that fit a schema. `words`: strings from which values are often drawn, because several
 * fields must have the same one, such as the id of a call.
 */
export function valuesOf(schema: Schema, components: Record<string, Schema>, words: readonly string[]) {
  const known = new Map<string, fc.Arbitrary<unknown>>();

  function of(schema: Schema): fc.Arbitrary<unknown> {
    if (schema.$ref !== undefined) return referred(schema.$ref.split("/").at(-1)!);
    if (schema.const !== undefined) return fc.constant(schema.const);
    if (schema.enum) return fc.constantFrom(...schema.enum);
    if (schema.anyOf) return fc.oneof(...schema.anyOf.map(of));
    const kinds = [schema.type ?? []].flat();
    return kinds.length === 0 ? fc.jsonValue({ maxDepth: 1 }) : fc.oneof(...kinds.map((kind) => ofKind(kind, schema)));
  }

  function referred(name: string): fc.Arbitrary<unknown> {
    const values = known.get(name) ?? of(components[name]!);
    known.set(name, values);
    return values;
  }

  function ofKind(kind: string, schema: Schema): fc.Arbitrary<unknown> {
    const { minimum: min, maximum: max } = schema;
    switch (kind) {
      case "null":
        return fc.constant(null);
      case "boolean":
        return fc.boolean();
      case "integer":
        return fc.integer({ min: min ?? -1e6, max: Math.min(max ?? 1e6, 2 ** 31 - 1) });
      case "number":
        return fc.double({ min: min ?? -1e6, max: max ?? 1e6, noNaN: true }).map((value) => value + 0);
      case "string":
        return strings(schema);
      case "array": {
        const { items = {}, minItems: minLength = 0, maxItems = 3 } = schema;
        return fc.array(of(items), { minLength, maxLength: Math.min(maxItems, minLength + 2) });
      }
      default:
        return objects(schema);
    }
  }

  function strings({ pattern, minLength = 0, maxLength = 8 }: Schema): fc.Arbitrary<string> {
    if (pattern !== undefined) return fc.stringMatching(new RegExp(pattern));
    return fc.oneof(
      { weight: 3, arbitrary: fc.constantFrom(...words) },
      fc.string({ unit: "binary", minLength, maxLength: Math.max(minLength, Math.min(maxLength, 8)) }),
    );
  }

  /**
   * Generates objects with few optional fields, because the first refused field hides the others. Of fields that the
   * schema relates to each other, any number is generated, because related ones would rarely meet otherwise.
   */
  function objects(schema: Schema) {
    const { properties = {}, required = [], dependentSchemas = {} } = schema;
    const related = new Set(JSON.stringify(dependentSchemas).match(/\w+/g));
    const fields = Object.entries(properties).map(([name, inner]) => [name, of(inner)] as const);
    const chosen = (wanted: (name: string) => boolean, most = fields.length) => {
      const among = fields.filter(([name]) => !required.includes(name) && wanted(name));
      return fc.shuffledSubarray(among, { maxLength: Math.min(among.length, most) });
    };
    const always = fields.filter(([name]) => required.includes(name));
    return fc
      .tuple(
        others(schema),
        chosen((name) => related.has(name)),
        chosen((name) => !related.has(name), 4),
      )
      .chain(([extra, ...optional]) =>
        fc.record(Object.fromEntries([...always, ...optional.flat()])).map((value) => ({ ...extra, ...value })),
      );
  }

  /** Additional fields that the schema does not name, if it allows them. */
  function others({ additionalProperties: more, propertyNames }: Schema) {
    if (more === false) return fc.constant({});
    const names = propertyNames && (of({ type: "string", ...propertyNames }) as fc.Arbitrary<string>);
    const values = of(typeof more === "object" ? more : {});
    return fc.dictionary(names ?? fc.constantFrom("x", "extra"), values, { maxKeys: 1 });
  }

  return of(schema);
}
