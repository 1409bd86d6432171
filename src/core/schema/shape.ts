/** The keywords of JSON Schema that this repository uses. Code that walks through a schema ignores all others. */
export interface Shape {
  type?: "string" | "number" | "integer" | "boolean" | "null" | "object" | "array";
  const?: unknown;
  enum?: unknown[];
  anyOf?: Shape[];
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  minimum?: number;
  maximum?: number;
  minItems?: number;
  maxItems?: number;
  uniqueItems?: boolean;
  items?: Shape;
  properties?: Record<string, Shape>;
  patternProperties?: Record<string, Shape>;
  propertyNames?: Shape;
  minProperties?: number;
  maxProperties?: number;
  /** typebox sets it to undefined if nothing is required. */
  required?: string[] | undefined;
  additionalProperties?: boolean | Shape;
  /**
   * The key is a value of the protocol that this service does not support, the value is the name of the value's
   * feature. The key `*` stands for any value.
   */
  "x-unsupported"?: Record<string, string>;
}

/** The required property that is a constant string in every branch of a union of objects; null if there is none. */
export function discriminator(branches: Shape[]): string | null {
  for (const key of Object.keys(branches[0]?.properties ?? {})) {
    const tells = (branch: Shape) =>
      typeof branch.properties?.[key]?.const === "string" && branch.required?.includes(key);
    if (branches.every(tells)) return key;
  }
  return null;
}
