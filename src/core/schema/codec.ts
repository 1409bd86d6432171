/**
 * Translates between values of the program and their JSON, by one schema: names are in snake case in JSON and in camel
 * case in the program, and a schema made with `Type.Codec` turns its text into another value (an instant into a Date).
 * Members that the schema does not name are dropped, so nothing undeclared is written. Pure.
 */
import type { Static, StaticDecode, TSchema } from "typebox";
import type { Shape } from "./shape.ts";

/** The value that a program works with. */
export type Value<Schema extends TSchema> = Camel<StaticDecode<Schema>>;
/** The value before its texts are decoded. An optional member may also be undefined. */
export type Given<Schema extends TSchema> = Open<Camel<Static<Schema>>>;

type Open<T> = unknown extends T
  ? T
  : T extends readonly (infer Item)[]
    ? Open<Item>[]
    : T extends object
      ? { [Name in keyof T]: object extends Pick<T, Name> ? Open<T[Name]> | undefined : Open<T[Name]> }
      : T;

type Camel<T> = unknown extends T
  ? T
  : T extends Date
    ? T
    : T extends readonly (infer Item)[]
      ? Camel<Item>[]
      : T extends object
        ? { [Name in keyof T as CamelName<Name>]: Camel<T[Name]> }
        : T;

type CamelName<Name> = Name extends `${infer First}_${infer Rest}`
  ? Rest extends "ms" | "s" | "max" | "min"
    ? Name
    : `${First}${Capitalize<CamelName<Rest> & string>}`
  : Name;

interface Encoded extends Shape {
  "~codec"?: { decode(value: unknown): unknown; encode(value: unknown): unknown };
  items?: Encoded;
  patternProperties?: Record<string, Encoded>;
}

/** The JSON of a value. Throws an Error if a required member is missing, which is a defect of the calling code. */
export function encode<Schema extends TSchema>(schema: Schema, value: Value<Schema>): unknown {
  return encoded(schema as Encoded, value);
}

/**
 * Makes the program's value of JSON that satisfies the schema. A `Type.Codec` may throw for a text that the schema
 * allows but the codec cannot decode.
 */
export function decode<Schema extends TSchema>(schema: Schema, json: unknown): Value<Schema> {
  return decoded(schema as Encoded, json) as Value<Schema>;
}

/** Makes the JSON of a value whose texts are not decoded yet. Absent members are left out, unknown members stay. */
export function jsonOf(schema: TSchema, given: unknown): unknown {
  const shape = branchOf(schema as Encoded, given);
  const { items, properties } = shape;
  if (Array.isArray(given)) return given.map((item) => jsonOf((items ?? {}) as TSchema, item));
  const map = mapOf(shape, given, (inner, value) => jsonOf(inner as TSchema, value));
  if (map) return map;
  if (!properties || typeof given !== "object" || given === null) return given;
  const json: Record<string, unknown> = {};
  for (const [name, inner] of Object.entries(given)) {
    const written = snakeName(name);
    if (inner === undefined) continue;
    if (Object.hasOwn(properties, written)) json[written] = jsonOf(properties[written] as TSchema, inner);
    else json[name] = inner;
  }
  return json;
}

/** The name in camel case; units and bounds at its end stay: `firstPart_ms` for `first_part_ms`. */
export function camelName(name: string): string {
  return name.replace(/_(?!(?:ms|s|max|min)$)([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

export function snakeName(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function encoded(schema: Encoded, value: unknown): unknown {
  const shape = branchOf(schema, value);
  if (shape["~codec"]) return shape["~codec"].encode(value);
  if (Array.isArray(value)) return value.map((item) => encoded(shape.items ?? {}, item));
  const map = mapOf(shape, value, encoded);
  if (map) return map;
  if (!shape.properties || typeof value !== "object" || value === null) return value;
  const members = value as Record<string, unknown>;
  const json: Record<string, unknown> = {};
  for (const name of orderOf(shape, members)) {
    const member = members[camelName(name)];
    if (member !== undefined) json[name] = encoded(shape.properties[name]!, member);
    else if (shape.required?.includes(name)) throw new Error(`the value has no member '${camelName(name)}'`);
  }
  return json;
}

/** The members' names in the schema's order, or, if members may be missing, in the value's order. */
function orderOf({ properties = {}, required = [] }: Shape, members: Record<string, unknown>): string[] {
  const names = Object.keys(properties);
  if (required.length === names.length) return names;
  return Object.keys(members)
    .map(snakeName)
    .filter((name) => Object.hasOwn(properties, name));
}

function decoded(schema: Encoded, json: unknown): unknown {
  const shape = branchOf(schema, json);
  if (shape["~codec"]) return shape["~codec"].decode(json);
  if (Array.isArray(json)) return json.map((item) => decoded(shape.items ?? {}, item));
  const map = mapOf(shape, json, decoded);
  if (map) return map;
  const { properties } = shape;
  if (!properties || typeof json !== "object" || json === null) return json;
  const named = Object.entries(json).filter(([name]) => Object.hasOwn(properties, name));
  return Object.fromEntries(named.map(([name, inner]) => [camelName(name), decoded(properties[name]!, inner)]));
}

/** The branch of a nullable schema that describes this value. */
function branchOf(shape: Encoded, value: unknown): Encoded {
  if (!shape.anyOf || shape["~codec"]) return shape;
  return shape.anyOf.find(({ type }) => (type === "null") === (value === null)) ?? shape;
}

/**
 * The map with each value translated. The names in the map are not translated, because they are data. Null if the
 * schema does not describe a map.
 */
function mapOf({ patternProperties }: Encoded, value: unknown, each: (inner: Encoded, value: unknown) => unknown) {
  const [inner] = Object.values(patternProperties ?? {});
  if (!inner || typeof value !== "object" || value === null) return null;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, each(inner, one)]));
}
