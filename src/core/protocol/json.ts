/** Reads values of any type, which came from outside. */
export type JsonObject = Record<string, unknown>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Reports whether a field has a value. A null means the same as an absent field. */
export function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}

/** The text, or "" if the value is none. */
export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** The entry of a table under a name that came from outside. Inherited properties such as `constructor` are no entries. */
export function entryOf<Value>(table: Readonly<Partial<Record<string, Value>>>, name: string): Value | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}
