/** The bytes of a body → its JSON value: strictly UTF-8, bounded in depth. Faults: invalid_json. */
import { Fault } from "../inference/fault.ts";

export function parseJsonBody(bytes: Uint8Array, depth_max: number): unknown {
  if (bytes.byteLength === 0) throw new Fault("invalid_json", "The request has no body. Send a JSON object.");
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new Fault("invalid_json", "The request body is not valid UTF-8.", { cause });
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new Fault("invalid_json", `The request body is not valid JSON${whereOf(cause)}.`, { cause });
  }
  if (isDeeper(value, depth_max)) {
    throw new Fault("invalid_json", `The request body is nested more than ${depth_max} levels deep. Flatten it.`);
  }
  return value;
}

/** The parser's own words quote the body; only a position may pass. */
function whereOf(cause: unknown): string {
  const at = /position (\d+)/.exec(String((cause as Error)?.message))?.[1];
  return at ? ` (at position ${at})` : "";
}

/** Counts levels of objects and arrays; a value's leaves cost nothing. */
function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (levels === 0) return true;
  if (Array.isArray(value)) {
    for (const item of value) if (typeof item === "object" && isDeeper(item, levels - 1)) return true;
    return false;
  }
  for (const key in value) {
    const item = (value as Record<string, unknown>)[key];
    if (typeof item === "object" && isDeeper(item, levels - 1)) return true;
  }
  return false;
}
