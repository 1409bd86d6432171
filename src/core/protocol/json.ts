/** Helpers for JSON values of any type, which come from outside. */
export type JsonObject = Record<string, unknown>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Reports whether a field has a value. A null means the same as an absent field. */
export function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}

/** The value if it is a text, else "". */
export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** The entry of a table by a name from outside. Inherited properties such as `constructor` don't count. */
export function entryOf<Value>(table: Readonly<Partial<Record<string, Value>>>, name: string): Value | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}
