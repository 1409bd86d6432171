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

/**
 * The entry of a table under a name that comes from outside. Inherited properties such as `constructor` don't count.
 */
export function entryOf<Value>(table: Readonly<Partial<Record<string, Value>>>, name: string): Value | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}

/** The value at a path of names and of positions in lists; undefined if there is none. */
export function valueAt(object: JsonObject, path: readonly (string | number)[]): unknown {
  let value: unknown = object;
  for (const step of path) {
    if (typeof step === "number" ? !Array.isArray(value) : !isObject(value)) return undefined;
    value = (value as JsonObject)[step];
  }
  return value;
}

/**
 * The fields without those that are null or undefined. In a protocol a field may be null or left out; in the
 * protocol-neutral form it is left out. Spread the result into the object to which the fields belong.
 */
export function compact<Fields extends object>(fields: Fields): Compact<Fields> {
  const kept: Compact<Fields> = {};
  for (const name in fields) {
    const value = fields[name];
    if (value !== undefined && value !== null) kept[name] = value;
  }
  return kept;
}

type Compact<Fields> = { [Name in keyof Fields]?: NonNullable<Fields[Name]> };
