/**
 * Turns typebox values (shapes) into OpenAPI 3.1 schemas. A shape with an `$id` becomes one component, to which all its
 * uses refer. A union `[X, null]` is written as X with `null` as a second type if that means the same, because it is
 * easier to read.
 */
import type { TSchema } from "typebox";
import { discriminator } from "../../core/schema/shape.ts";

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

export class Components {
  readonly #schemas = new Map<string, JsonObject>();
  readonly #sources = new Map<string, TSchema>();

  /**
   * Begins without components. `changes`: functions that rewrite a component after it was made; the key is the
   * component's `$id`.
   */
  constructor(readonly changes: Record<string, (schema: JsonObject) => JsonObject> = {}) {}

  /** The OpenAPI schema of a shape. Throws if two shapes have one `$id`. */
  schemaOf(shape: TSchema): JsonObject {
    return this.#write(shape) as JsonObject;
  }

  schemas(): JsonObject {
    return Object.fromEntries([...this.#schemas].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  #write(value: unknown): Json {
    if (Array.isArray(value)) return value.map((item) => this.#write(item));
    if (typeof value !== "object" || value === null) return value as Json;
    const { $id, ...shape } = value as Record<string, unknown>;
    if (typeof $id !== "string") return withNull(this.#object(shape));
    const source = this.#sources.get($id);
    if (source !== undefined && source !== value && JSON.stringify(source) !== JSON.stringify(value))
      throw new Error(`Two shapes have the $id '${$id}'.`);
    if (source === undefined) {
      this.#sources.set($id, value as TSchema);
      const schema = withNull(this.#object(shape));
      const key = Array.isArray(shape.anyOf) ? discriminator(shape.anyOf) : null;
      if (key) schema.discriminator = { propertyName: key, mapping: mappingOf(shape.anyOf as TSchema[], key) };
      this.#schemas.set($id, this.changes[$id]?.(schema) ?? schema);
    }
    return { $ref: `#/components/schemas/${$id}` };
  }

  #object(shape: Record<string, unknown>): JsonObject {
    return Object.fromEntries(Object.entries(shape).map(([key, inner]) => [key, this.#write(inner)]));
  }
}

/** Maps each value of the discriminator to the component of its branch. Branches that are no component are left out. */
function mappingOf(branches: TSchema[], key: string): JsonObject {
  return Object.fromEntries(
    (branches as NamedShape[]).flatMap(({ $id, properties }) =>
      $id ? [[String(properties[key]?.const), `#/components/schemas/${$id}`]] : [],
    ),
  );
}
interface NamedShape {
  $id?: string;
  properties: Record<string, { const?: unknown }>;
}

/** Rewrites `anyOf: [X, null]` as X with null among its types or branches, if that means the same. */
function withNull(schema: JsonObject): JsonObject {
  const { anyOf, ...rest } = schema;
  if (!Array.isArray(anyOf) || anyOf.length !== 2) return schema;
  const [inner, nothing] = anyOf as [JsonObject, JsonObject];
  if (nothing.type !== "null") return schema;
  if (Array.isArray(inner.anyOf)) return { ...rest, ...inner, anyOf: [...inner.anyOf, nothing] };
  if (typeof inner.type !== "string") return schema;
  const { type, const: only, ...more } = inner;
  const values = only === undefined ? inner.enum : [only];
  return { type: [type, "null"], ...rest, ...more, ...(Array.isArray(values) ? { enum: [...values, null] } : {}) };
}
