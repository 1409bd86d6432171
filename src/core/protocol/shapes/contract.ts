/**
 * Constructors of schemas for the contracts of all protocols, and the shapes that these share.
 *
 * Two annotations are published with a JSON Schema:
 * - `x-must-be` describes a constraint in error messages ("an https: or data: URL");
 * - `x-unsupported` names the features that the protocol's values stand for and this service lacks. Such a value gets
 *   `unsupported_feature` and not `invalid_value`. The key "*" stands for every value of the right type that is not allowed.
 */
import type { TArray, TObjectOptions, TProperties, TSchema, TUnion } from "typebox";
import Type from "typebox";
import { absoluteBounds } from "../engine-options.ts";

export const text = Type.String();
export const nonEmpty = Type.String({ minLength: 1 });
export const flag = Type.Boolean();

/** The schema of a field that may be absent or null; both mean the same. */
export function optional<Schema extends TSchema>(schema: Schema) {
  return Type.Optional(Type.Union([schema, Type.Null()]));
}

/** The schema of a field that this service does not support. Only null is valid, which means the same as absent. */
export function unsupported(name: string) {
  return Type.Optional(Type.Null({ description: `Not supported: ${name}.`, "x-unsupported": { "*": name } }));
}

export function oneOf<Values extends string[]>(values: readonly [...Values], options: Record<string, unknown> = {}) {
  return Type.Enum(values, { type: "string", ...options });
}

/** Makes an `x-unsupported` table. `features`: for each feature, the values of `type` that ask for it. */
export function refusedKinds(features: Readonly<Record<string, readonly string[]>>): Record<string, string> {
  const pairs = Object.entries(features).flatMap(([feature, kinds]) => kinds.map((kind) => [kind, feature]));
  return Object.fromEntries(pairs);
}

/** Limits on values that a client may nest freely: docs/design/service.md, Cost before trust. */
const items_max = 10_000;
export const properties_max = 4_096;
/** The most messages of a conversation, or items of an input. */
export const turns_max = 100_000;

/** The schema of a list in a request, of at most `items_max` items unless `options` says otherwise. */
export function list<Item extends TSchema>(item: Item, options: Record<string, unknown> = {}): TArray<Item> {
  return Type.Array(item, { maxItems: items_max, ...options });
}

/** The schema of an object in a request that may have any keys. `properties` are those that have an effect. */
export function anyObject(options: Record<string, unknown> = {}, properties: TProperties = {}) {
  return openObject({ maxProperties: properties_max, ...options }, properties);
}

/** The schema of an object that may have any keys. `properties` are those that have an effect. */
export function openObject(options: Record<string, unknown> = {}, properties: TProperties = {}) {
  return Type.Unsafe<Record<string, unknown>>(Type.Object(properties, { additionalProperties: true, ...options }));
}

/** The schema of one member of a union of objects that are distinguished by `type`. */
export function tagged<const Kind extends string, Keys extends TProperties>(
  type: Kind,
  keys: Keys,
  options?: TObjectOptions,
) {
  return Type.Object({ type: Type.Literal(type), ...keys }, options);
}

export function nullable<Schema extends TSchema>(schema: Schema): TUnion<[Schema, Type.TNull]> {
  return Type.Union([schema, Type.Null()]);
}

export const instant = (description: string) =>
  Type.String({
    format: "date-time",
    pattern: "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$",
    description: `${description} ISO 8601, UTC, milliseconds.`,
  });

export const imageUrl = Type.String({
  pattern: "^([Hh][Tt][Tt][Pp][Ss]://|[Dd][Aa][Tt][Aa]:)",
  "x-must-be": "an https: or data: URL",
});

export const unixSeconds = Type.Integer({ minimum: 0, description: "Unix timestamp, seconds." });

export function count() {
  return Type.Integer({ minimum: 0 });
}

export const Money = Type.Object(
  {
    amount: Type.String({ pattern: "^-?\\d+\\.\\d{6,9}$", description: "A decimal number, exact." }),
    currency: Type.String({ description: "A code of ISO 4217, or `credits`: the same everywhere in the service." }),
  },
  { $id: "Money", description: "An amount of the service's currency." },
);

/** A model's id. The published document adds an enumeration of the catalog's models. */
export const ModelId = Type.String({
  $id: "ModelId",
  minLength: 1,
  maxLength: 256,
  description: "A public model id, `<vendor>/<model_name>`. `GET /v1/models` lists the active ones.",
});
export type ModelId = Type.Static<typeof ModelId>;

/** The name of a tool as engines accept it, within the absolute bounds (for models with `bounds: engine`). */
export const engineName = Type.String({
  pattern: `^[\\x21-\\x7e]{1,${absoluteBounds.name_characters_max}}$`,
  "x-must-be": `1 to ${absoluteBounds.name_characters_max} printable ASCII characters without a blank`,
});
