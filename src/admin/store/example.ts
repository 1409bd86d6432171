/**
 * Makes an example value from a schema. Each field has its own example (`examples`), or else the first value of its
 * enumeration or its smallest number. Pure.
 */
import type { TSchema } from "typebox";
import { decode, type Value } from "../../core/schema/codec.ts";
import type { Shape } from "../../core/schema/shape.ts";

const instant = "2026-11-21T03:00:00.000Z";

/** Makes the example. `differs`: the members whose values differ from the schema's examples. */
export function exampleOf<Schema extends TSchema>(schema: Schema, differs: Partial<Value<Schema>> = {}): Value<Schema> {
  return { ...(decode(schema, jsonFor(schema as Shape)) as object), ...differs } as Value<Schema>;
}

function jsonFor(shape: Shape & { examples?: unknown[]; format?: string }): unknown {
  if (shape.examples) return shape.examples[0];
  if (shape.const !== undefined) return shape.const;
  if (shape.enum) return shape.enum[0];
  if (shape.anyOf) return jsonForOne(shape.anyOf);
  if (shape.format === "date-time") return instant;
  if (shape.type === "object") return membersOf(shape);
  if (shape.type === "array") return [jsonFor(shape.items ?? {})];
  if (shape.type === "boolean") return false;
  return shape.type === "string" ? "text" : (shape.minimum ?? 0);
}

/** The example of a union: the example of a branch; null if null is allowed and no branch has an example. */
function jsonForOne(branches: (Shape & { examples?: unknown[] })[]): unknown {
  const said = branches.find(({ examples }) => examples);
  if (said) return jsonFor(said);
  return branches.some(({ type }) => type === "null") ? null : jsonFor(branches[0]!);
}

function membersOf({ properties = {}, required = [] }: Shape): Record<string, unknown> {
  return Object.fromEntries(required.map((name) => [name, jsonFor(properties[name]!)]));
}
