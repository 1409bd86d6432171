/**
 * Makes a value for a JSON Schema without searching: $ref and $defs, const, enum, type, properties, required, items,
 * prefixItems, anyOf, oneOf, allOf, bounds, lengths and formats. docs/simulator.md lists the ignored keywords. Even a
 * hostile schema takes a bounded time, but its value may then not match it.
 */
import { isObject, type Json as Schema } from "./request.ts";
import type { Random } from "./text.ts";

/**
 * Deeper than this level of nesting, only required members are made, and branches that do not nest further are
 * preferred.
 */
const depth_ample = 4;
const depth_max = 64;
const steps_max = 20_000;
const items_max = 200;
const length_max = 10_000;

export function satisfying(schema: unknown, next: Random): unknown {
  let steps = 0;
  const make = (inner: unknown, name: string, depth: number): unknown => {
    steps += 1;
    if (depth > depth_max || steps > steps_max) return null;
    const flat = flattened(inner, schema, depth, next);
    if ("const" in flat) return flat.const;
    if (Array.isArray(flat.enum) && flat.enum.length > 0) return picked(flat.enum, next);
    switch (typeOf(flat)) {
      case "null":
        return null;
      case "boolean":
        return next() < 0.5;
      case "integer":
        return integerIn(flat, next);
      case "number":
        return numberIn(flat, next);
      case "array":
        return itemsOf(flat, depth).map((item, index) => make(item, `${name} ${index + 1}`, depth + 1));
      case "object":
        return Object.fromEntries(
          [...propertiesOf(flat, depth)].map(([key, value]) => [key, make(value, key, depth + 1)]),
        );
      default:
        return stringOf(flat, name);
    }
  };
  return make(schema, "value", 0);
}

const types = ["object", "array", "string", "integer", "number", "boolean", "null"];

function typeOf(schema: Schema): string {
  const named = [schema.type].flat().filter((type) => types.includes(type as string)) as string[];
  // If there are several types, the first type other than null is used.
  if (named.length > 0) return named.find((type) => type !== "null") ?? "null";
  const has = (...keywords: string[]) => keywords.some((keyword) => keyword in schema);
  if (has("properties", "required", "additionalProperties")) return "object";
  if (has("items", "prefixItems", "minItems")) return "array";
  return has("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum") ? "number" : "string";
}

/** Follows references, and chooses and merges branches, until only plain keywords are left. */
function flattened(schema: unknown, root: unknown, depth: number, next: Random): Schema {
  let flat: Schema = isObject(schema) ? schema : {};
  for (let turn = 0; turn < 50; turn++) {
    const { $ref, allOf, anyOf, oneOf, ...rest } = flat;
    if (typeof $ref === "string") flat = merged({ ...rest, allOf, anyOf, oneOf }, target($ref, root));
    else if (Array.isArray(allOf)) flat = allOf.slice(0, items_max).reduce<Schema>(merged, { ...rest, anyOf, oneOf });
    else if (Array.isArray(anyOf)) flat = merged({ ...rest, oneOf }, chosen(anyOf, depth, next));
    else if (Array.isArray(oneOf)) flat = merged(rest, chosen(oneOf, depth, next));
    else break;
  }
  return flat;
}

/** Merges two schemas: properties, required and allOf are combined; of any other keyword, the value in `from` wins. */
function merged(into: Schema, from: unknown): Schema {
  const result: Schema = { ...into };
  for (const [keyword, theirs] of Object.entries(isObject(from) ? from : {})) {
    const ours = into[keyword];
    if (keyword === "properties" && isObject(ours) && isObject(theirs)) result[keyword] = { ...ours, ...theirs };
    else if (["required", "allOf"].includes(keyword) && Array.isArray(ours) && Array.isArray(theirs)) {
      result[keyword] = [...ours, ...theirs];
    } else if (theirs !== undefined) result[keyword] = theirs;
  }
  return result;
}

/**
 * The schema to which a JSON pointer within the document (`#/$defs/node`) refers; if there is none, the schema that
 * allows all values.
 */
function target(reference: string, root: unknown): unknown {
  let at: unknown = root;
  for (const step of reference.split("/").slice(1)) {
    const key = step.replaceAll("~1", "/").replaceAll("~0", "~");
    at = isObject(at) && Object.hasOwn(at, key) ? at[key] : {};
  }
  return at;
}

function chosen(branches: unknown[], depth: number, next: Random): unknown {
  const isNull = (branch: unknown) => isObject(branch) && branch.type === "null";
  const ends = (branch: unknown) =>
    isObject(branch) && !["$ref", "allOf", "anyOf", "oneOf", "required"].some((each) => each in branch);
  const deep = depth >= depth_ample;
  const preferred = branches.filter(deep ? ends : (branch) => branch !== false && !isNull(branch));
  if (preferred.length > 0) return deep ? (preferred.find(isNull) ?? preferred[0]) : picked(preferred, next);
  return branches.at(-1);
}

function* propertiesOf(schema: Schema, depth: number): Generator<[key: string, schema: unknown]> {
  const properties = isObject(schema.properties) ? schema.properties : {};
  const required = Array.isArray(schema.required) ? schema.required.filter((key) => typeof key === "string") : [];
  for (const key of new Set([...(depth < depth_ample ? Object.keys(properties) : []), ...required])) {
    const value = Object.hasOwn(properties, key) ? properties[key] : schema.additionalProperties;
    if (value !== false) yield [key, value];
  }
}

function itemsOf(schema: Schema, depth: number): unknown[] {
  const heads = Array.isArray(schema.prefixItems) ? schema.prefixItems : [];
  const least = Math.max(0, bound(schema.minItems, 0));
  const preferred = schema.items === false ? heads.length : depth < depth_ample ? Math.max(heads.length, 2) : 0;
  const length = Math.min(Math.max(least, preferred), bound(schema.maxItems, items_max), items_max);
  return Array.from({ length: Math.max(0, length) }, (_, index) =>
    index < heads.length ? heads[index] : schema.items,
  );
}

function integerIn(schema: Schema, next: Random): number {
  const { minimum, exclusiveMinimum, maximum, exclusiveMaximum } = boundsOf(schema);
  const above = Math.max(Math.ceil(minimum), Math.floor(exclusiveMinimum) + 1);
  const below = Math.min(Math.floor(maximum), Math.ceil(exclusiveMaximum) - 1);
  const low = above > Number.NEGATIVE_INFINITY ? above : Math.min(0, below - 100);
  return low + Math.floor(next() * Math.min(100, Math.max(0, below - low) + 1));
}

/** A number between the bounds, with two decimals if there is such a number. */
function numberIn(schema: Schema, next: Random): number {
  const { minimum, exclusiveMinimum, maximum, exclusiveMaximum } = boundsOf(schema);
  const above = Math.max(minimum, exclusiveMinimum);
  const below = Math.min(maximum, exclusiveMaximum);
  const low = above > Number.NEGATIVE_INFINITY ? above : Math.min(0, below - 100);
  const high = below < Number.POSITIVE_INFINITY ? below : low + 100;
  const exact = low + (high - low) * (0.1 + 0.8 * next());
  const rounded = Math.round(exact * 100) / 100;
  return rounded > low && rounded < high ? rounded : exact;
}

const formats: Record<string, string> = {
  "date-time": "2026-01-31T12:00:00Z",
  date: "2026-01-31",
  time: "12:00:00Z",
  duration: "PT15M",
  email: "keeper@sluice.example",
  hostname: "sluice.example",
  ipv4: "192.0.2.1",
  ipv6: "2001:db8::1",
  uri: "https://sluice.example/gate",
  url: "https://sluice.example/gate",
  "uri-reference": "/gate",
  uuid: "019a0000-0000-7000-8000-000000000001",
  "json-pointer": "/gate/0",
  regex: "^gate$",
  byte: "c2x1aWNl",
};

function stringOf(schema: Schema, name: string): string {
  if (typeof schema.format === "string" && Object.hasOwn(formats, schema.format)) return formats[schema.format]!;
  const min = Math.min(bound(schema.minLength, 0), length_max);
  const max = Math.max(bound(schema.maxLength, length_max), 0);
  return `simulated ${name.slice(0, 60)}`.padEnd(min, " water").slice(0, max);
}

function picked(values: unknown[], next: Random): unknown {
  return values[Math.floor(next() * values.length)];
}

function boundsOf(schema: Schema) {
  return {
    minimum: bound(schema.minimum, Number.NEGATIVE_INFINITY),
    exclusiveMinimum: bound(schema.exclusiveMinimum, Number.NEGATIVE_INFINITY),
    maximum: bound(schema.maximum, Number.POSITIVE_INFINITY),
    exclusiveMaximum: bound(schema.exclusiveMaximum, Number.POSITIVE_INFINITY),
  };
}

function bound(value: unknown, otherwise: number): number {
  return typeof value === "number" ? value : otherwise;
}
