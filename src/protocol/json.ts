/** Reading what cannot be trusted. */
export type JsonObject = Record<string, unknown>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The text, or nothing where there is none. */
export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
