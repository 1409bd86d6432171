/**
 * Mends the schema of a tool's arguments for engines that refuse what JSON Schema allows: a schema that is not declared
 * an object, an object without `properties`, and `true` or `false` as a schema. Pure.
 */
import { isObject, type JsonObject } from "./json.ts";

export function mended(schema: Readonly<JsonObject>): JsonObject {
  const { type = "object", properties, ...rest } = schema;
  if (type !== "object") return withoutBooleans(schema) as JsonObject;
  return { type, properties: withoutBooleans(properties ?? {}, "named"), ...(withoutBooleans(rest) as JsonObject) };
}

/**
 * The keywords whose values contain schemas: one schema, a list of schemas, or an object with a schema for each name.
 */
const kinds: Readonly<Record<string, "one" | "listed" | "named">> = {
  properties: "named",
  patternProperties: "named",
  $defs: "named",
  definitions: "named",
  items: "one",
  not: "one",
  anyOf: "listed",
  oneOf: "listed",
  allOf: "listed",
  prefixItems: "listed",
};

/**
 * The schema without `true` and `false` as schemas in it. They stay in `additionalProperties`, where all engines accept
 * them.
 */
function withoutBooleans(value: unknown, as: "one" | "listed" | "named" = "one"): unknown {
  if (as === "listed") return Array.isArray(value) ? value.map((one) => withoutBooleans(one)) : value;
  if (as === "one" && typeof value === "boolean") return value ? {} : { not: {} };
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => {
      const kind = as === "named" ? "one" : Object.hasOwn(kinds, name) ? kinds[name] : undefined;
      return [name, kind === undefined ? inner : withoutBooleans(inner, kind)];
    }),
  );
}
