/**
 * A value that satisfies a JSON Schema, as far as one can be found without search: $ref and $defs, const, enum, type,
 * properties, required, items, prefixItems, anyOf, oneOf, allOf, bounds of numbers, lengths, patterns and formats.
 * `not`, `if` and `contains` are passed over. Hostile schemas cost a bounded time and give some value, fitting or not.
 */
import { matching } from "./pattern.ts";
import { isObject } from "./request.ts";
import type { Random } from "./text.ts";

type Schema = Record<string, unknown>;

/** Beyond this depth only what is required is made, and of several branches the shallowest. */
const depth_ample = 4;
const depth_max = 64;
const steps_max = 20_000;
const items_max = 200;
const length_max = 10_000;

export function satisfying(schema: unknown, next: Random, name = "value"): unknown {
  return made(schema, name, 0, { root: schema, next, steps: 0 });
}

interface Making {
  root: unknown;
  next: Random;
  steps: number;
}

function made(schema: unknown, name: string, depth: number, making: Making): unknown {
  making.steps += 1;
  if (depth > depth_max || making.steps > steps_max) return null;
  const flat = flattened(schema, depth, making);
  if ("const" in flat) return flat.const;
  if (Array.isArray(flat.enum) && flat.enum.length > 0) return picked(flat.enum, making.next);
  switch (typeOf(flat)) {
    case "null":
      return null;
    case "boolean":
      return making.next() < 0.5;
    case "integer":
      return numberIn(flat, true, making.next);
    case "number":
      return numberIn(flat, false, making.next);
    case "array":
      return arrayOf(flat, name, depth, making);
    case "object":
      return objectOf(flat, depth, making);
    default:
      return stringOf(flat, name);
  }
}

const types = ["object", "array", "string", "integer", "number", "boolean", "null"];

function typeOf(schema: Schema): string {
  const given = Array.isArray(schema.type) ? schema.type : [schema.type];
  const known = given.filter((type) => types.includes(type));
  // Of several types the first that is not null says more.
  if (known.length > 0) return known.find((type) => type !== "null") ?? "null";
  const has = (...keywords: string[]) => keywords.some((keyword) => keyword in schema);
  if (has("properties", "required", "minProperties", "additionalProperties")) return "object";
  if (has("items", "prefixItems", "minItems")) return "array";
  if (has("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")) return "number";
  return "string";
}

const branching = ["$ref", "allOf", "anyOf", "oneOf"];

/** References followed, branches chosen and merged, until only plain keywords are left. */
function flattened(schema: unknown, depth: number, making: Making): Schema {
  let flat: Schema = isObject(schema) ? schema : {};
  for (let turn = 0; turn < 50 && branching.some((keyword) => keyword in flat); turn++) {
    const { $ref, allOf, anyOf, oneOf, ...rest } = flat;
    if (typeof $ref === "string") {
      flat = merged({ ...rest, allOf, anyOf, oneOf }, target($ref, making.root));
    } else if (Array.isArray(allOf)) {
      flat = allOf.slice(0, items_max).reduce<Schema>(merged, { ...rest, anyOf, oneOf });
    } else if (Array.isArray(anyOf) && anyOf.length > 0) {
      flat = merged({ ...rest, oneOf }, chosen(anyOf, depth, making));
    } else if (Array.isArray(oneOf) && oneOf.length > 0) {
      flat = merged(rest, chosen(oneOf, depth, making));
    } else break;
  }
  return flat;
}

function merged(into: Schema, from: unknown): Schema {
  if (!isObject(from)) return into;
  const result: Schema = { ...into, ...from };
  if (isObject(into.properties) && isObject(from.properties)) {
    result.properties = { ...into.properties, ...from.properties };
  }
  for (const keyword of ["required", "allOf"]) {
    const [ours, theirs] = [into[keyword], from[keyword]];
    if (Array.isArray(ours)) result[keyword] = Array.isArray(theirs) ? [...ours, ...theirs] : ours;
  }
  for (const keyword of Object.keys(into)) if (result[keyword] === undefined) result[keyword] = into[keyword];
  return result;
}

/** A JSON pointer within the document (`#/$defs/node`); what it does not find is the schema that allows all. */
function target(reference: string, root: unknown): unknown {
  if (!reference.startsWith("#")) return {};
  let at: unknown = root;
  for (const step of reference.split("/").slice(1)) {
    const key = unescaped(step).replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, key)) return {};
    at = (at as Schema)[key];
  }
  return at;
}

function unescaped(step: string): string {
  try {
    return decodeURIComponent(step);
  } catch {
    return step;
  }
}

function chosen(branches: unknown[], depth: number, making: Making): unknown {
  const possible = branches.filter((branch) => branch !== false);
  if (depth < depth_ample) {
    const full = possible.filter((branch) => !isObject(branch) || branch.type !== "null");
    return picked(full.length > 0 ? full : possible, making.next);
  }
  const heights = possible.map((branch) => height(branch, [], making));
  return possible[heights.indexOf(Math.min(...heights))];
}

/** How many levels the least value of a schema has; infinite where it needs itself. */
function height(schema: unknown, within: string[], making: Making): number {
  making.steps += 1;
  if (!isObject(schema)) return 0;
  if (making.steps > steps_max || within.length > depth_max) return Number.POSITIVE_INFINITY;
  const { $ref } = schema;
  if (typeof $ref === "string") {
    if (within.includes($ref)) return Number.POSITIVE_INFINITY;
    return height(target($ref, making.root), [...within, $ref], making);
  }
  let least = 0;
  for (const branches of [schema.anyOf, schema.oneOf]) {
    if (!Array.isArray(branches) || branches.length === 0) continue;
    least = Math.max(least, Math.min(...branches.map((branch) => height(branch, within, making))));
  }
  if (Array.isArray(schema.allOf)) {
    least = Math.max(least, ...schema.allOf.map((each) => height(each, within, making)));
  }
  const properties = isObject(schema.properties) ? schema.properties : {};
  for (const key of names(schema.required)) {
    if (Object.hasOwn(properties, key)) least = Math.max(least, 1 + height(properties[key], within, making));
  }
  if (bound(schema.minItems, 0) > 0) least = Math.max(least, 1 + height(schema.items, within, making));
  return least;
}

function objectOf(schema: Schema, depth: number, making: Making): Schema {
  const properties = isObject(schema.properties) ? schema.properties : {};
  const required = names(schema.required);
  const keys = new Set(depth < depth_ample ? [...Object.keys(properties), ...required] : required);
  const others = schema.additionalProperties === undefined ? {} : schema.additionalProperties;
  for (let extra = 1; keys.size < bound(schema.minProperties, 0) && extra <= items_max; extra++) {
    const optional = Object.keys(properties).find((key) => !keys.has(key));
    keys.add(optional ?? `extra_${extra}`);
  }
  const entries: [string, unknown][] = [];
  for (const key of keys) {
    if (making.steps > steps_max) break;
    const own = Object.hasOwn(properties, key);
    if (own && properties[key] === false) continue;
    entries.push([key, made(own ? properties[key] : others, key, depth + 1, making)]);
  }
  return Object.fromEntries(entries);
}

function arrayOf(schema: Schema, name: string, depth: number, making: Making): unknown[] {
  const heads = Array.isArray(schema.prefixItems) ? schema.prefixItems : [];
  const min = bound(schema.minItems, 0);
  const ample = depth < depth_ample && schema.items !== false ? Math.max(min, heads.length, 2) : min;
  const count = Math.min(
    schema.items === false ? Math.max(min, heads.length) : ample,
    bound(schema.maxItems, items_max),
  );
  const values: unknown[] = [];
  const seen = new Set<string>();
  for (let tries = 0; values.length < Math.min(count, items_max) && tries < items_max * 4; tries++) {
    if (making.steps > steps_max) break;
    const item = values.length < heads.length ? heads[values.length] : (schema.items ?? {});
    const value = made(item, `${name} ${values.length + 1}`, depth + 1, making);
    if (schema.uniqueItems === true) {
      const key = JSON.stringify(value);
      if (seen.has(key)) continue;
      seen.add(key);
    }
    values.push(value);
  }
  return values;
}

function numberIn(schema: Schema, integer: boolean, next: Random): number {
  const step = typeof schema.multipleOf === "number" && schema.multipleOf > 0 ? schema.multipleOf : integer ? 1 : 0;
  const grain = step > 0 ? (integer && step < 1 ? 1 : step) : 0.01;
  const above = bound(schema.exclusiveMinimum, Number.NEGATIVE_INFINITY);
  const below = bound(schema.exclusiveMaximum, Number.POSITIVE_INFINITY);
  let low = Math.max(bound(schema.minimum, Number.NEGATIVE_INFINITY), above);
  let high = Math.min(bound(schema.maximum, Number.POSITIVE_INFINITY), below);
  if (low === Number.NEGATIVE_INFINITY) low = Math.min(0, high - 100 * grain);
  if (high === Number.POSITIVE_INFINITY) high = low + 100 * grain;
  let first = Math.ceil(low / grain);
  let last = Math.floor(high / grain);
  if (first * grain <= above) first += 1;
  if (last * grain >= below) last -= 1;
  // No grain lies between: without a prescribed step anything inside will do.
  if (last < first) return step > 0 ? rounded(first * grain) : low + (high - low) / 2;
  return rounded((first + Math.floor(next() * Math.min(100, last - first + 1))) * grain);
}

/** 3 × 0.1 is 0.3 for every reader but a computer. */
function rounded(value: number): number {
  return Math.abs(value) < 1e12 ? Number(value.toPrecision(12)) + 0 : value;
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
  const min = Math.min(bound(schema.minLength, 0), length_max);
  const max = Math.max(bound(schema.maxLength, length_max), 0);
  if (typeof schema.pattern === "string") {
    const text = matching(schema.pattern, min);
    if (text !== null) return text;
  }
  if (typeof schema.format === "string" && Object.hasOwn(formats, schema.format)) return formats[schema.format]!;
  return `simulated ${name.slice(0, 60)}`.padEnd(min, " water").slice(0, max);
}

function picked(values: unknown[], next: Random): unknown {
  return values[Math.floor(next() * values.length)];
}

function bound(value: unknown, otherwise: number): number {
  return typeof value === "number" ? value : otherwise;
}

function names(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];
}
