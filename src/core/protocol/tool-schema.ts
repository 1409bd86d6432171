/** Adapts schemas of tools' arguments and of answers to engines that refuse what JSON Schema allows. Pure. */
import { isObject, type JsonObject } from "./json.ts";

/**
 * The schema of a tool's arguments for engines that refuse a schema whose type is not `object`, an object without
 * `properties`, and `true` or `false` in place of a schema.
 */
export function mended(schema: Readonly<JsonObject>): JsonObject {
  const sound = changed(schema, withoutBoolean) as JsonObject;
  const { type = "object", properties, ...rest } = sound;
  return type === "object" ? { type, properties: properties ?? {}, ...rest } : sound;
}

type Kind = "one" | "listed" | "named";

/**
 * The keywords whose values contain schemas: one schema, a list of schemas, or an object with a schema for each name.
 */
const kinds: Readonly<Record<string, Kind>> = {
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

/** The value with `change` applied to each schema in it, the innermost schemas first. */
function changed(value: unknown, change: (schema: unknown) => unknown, as: Kind = "one"): unknown {
  if (as === "listed") return Array.isArray(value) ? value.map((one) => changed(one, change)) : value;
  if (!isObject(value)) return as === "one" ? change(value) : value;
  const inside = Object.fromEntries(
    Object.entries(value).map(([name, inner]) => {
      const kind = as === "named" ? "one" : Object.hasOwn(kinds, name) ? kinds[name] : undefined;
      return [name, kind === undefined ? inner : changed(inner, change, kind)];
    }),
  );
  return as === "one" ? change(inside) : inside;
}

/**
 * The schemas that replace `true` and `false`. In `additionalProperties` the two stay, because all engines accept them
 * there.
 */
const ofBoolean = new Map<unknown, JsonObject>([[true, {}]]).set(false, { not: {} });
const withoutBoolean = (schema: unknown) => ofBoolean.get(schema) ?? schema;

// ---- schemas that are enforced ---------------------------------------------------------------------------------------

const isOfObjects = ({ type, properties }: JsonObject) => properties !== undefined || [type].flat().includes("object");

/**
 * Whether OpenAI's services take the schema as a strict one: an object, in which each object is closed and requires all
 * of its properties.
 */
export function isStrict(schema: Readonly<JsonObject>): boolean {
  let isSo = schema.type === "object";
  changed(schema, (one) => {
    if (!isObject(one)) return one;
    const required = new Set(Array.isArray(one.required) ? one.required : []);
    isSo &&= Object.keys(one.properties ?? {}).every((name) => required.has(name));
    isSo &&= one.oneOf === undefined && one.allOf === undefined;
    isSo &&= !isOfObjects(one) || one.additionalProperties === false;
    return one;
  });
  return isSo;
}

/** The keywords that Anthropic's API refuses in a schema that it has to enforce. */
const unenforced = /^((exclusiveM|m)(in|ax)imum|multipleOf|(min|max)(Length|Properties)|maxItems|uniqueItems)$/;
const knownFormats = /^(date|time|date-time|duration|email|hostname|uri|ipv4|ipv6|uuid)$/;

function isUnenforced([name, value]: [name: string, value: unknown]): boolean {
  if (name === "minItems") return value !== 0 && value !== 1;
  if (name === "additionalProperties") return value !== false;
  return unenforced.test(name) || (name === "format" && !knownFormats.test(String(value)));
}

/**
 * The schema for Anthropic's API: objects are closed, `oneOf` becomes `anyOf`, and keywords that the API refuses are moved
 * into the description.
 */
export function closed(schema: Readonly<JsonObject>): JsonObject {
  return changed(schema, (one) => {
    if (!isObject(one)) return one;
    const told = Object.entries(one).filter(isUnenforced);
    const { oneOf, ...kept }: JsonObject = Object.fromEntries(
      Object.entries(one).filter((entry) => !isUnenforced(entry)),
    );
    const words = JSON.stringify(Object.fromEntries(told));
    if (told.length > 0) kept.description = one.description ? `${one.description}\n\n${words}` : words;
    if (oneOf !== undefined) kept.anyOf ??= oneOf;
    if (isOfObjects(one)) kept.additionalProperties = false;
    return kept;
  }) as JsonObject;
}
