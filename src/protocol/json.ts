/** Reading what cannot be trusted. */
export type JsonObject = Record<string, unknown>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The text, or nothing where there is none. */
export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** A count that could be one: a report of -1 or 10^300 tokens is a defect of the engine, not a count. */
export function countOf(value: unknown): number | null {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= tokens_max ? value : null;
}
const tokens_max = 1_000_000_000;
