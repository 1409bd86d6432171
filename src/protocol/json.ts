/** Reading what cannot be trusted. */
export type JsonObject = Record<string, unknown>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The text, or nothing where there is none. */
export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** What a table has under a name that came from outside; not what every object has, such as `constructor`. */
export function entryOf<Value>(table: Readonly<Partial<Record<string, Value>>>, name: string): Value | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}
