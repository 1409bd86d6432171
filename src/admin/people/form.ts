/**
 * Reads a form, or a JSON object whose values are texts, into a map from names to texts. A repeated field is refused.
 */
import { readPieces } from "../../core/body/pieces.ts";
import type { Call } from "../../core/http/call.ts";
import { Fault } from "../../core/inference/fault.ts";

export type Fields = ReadonlyMap<string, string>;

const body_bytes_max = 64 * 1024;
const body_ms = 10_000;

/** Reads the fields of the body. Throws Fault `invalid_value`, `invalid_content_type` or `request_too_large`. */
export async function readFields(call: Call): Promise<Fields> {
  const { request } = call;
  const type = /^\s*([^;\s]*)/.exec(request.headers.get("content-type") ?? "")![1]!.toLowerCase();
  const pieces: Uint8Array[] = [];
  const bounds = { bytes_max: body_bytes_max, ms: body_ms };
  const reading =
    request.body === null ? "whole" : await readPieces(request.body, bounds, (one) => void pieces.push(one));
  if (reading === "too_large") throw new Fault("request_too_large", "The body is larger than 64 KiB.");
  if (reading !== "whole") throw new Fault("invalid_value", "The body did not arrive within 10 seconds.");
  call.bodyRead();
  const text = Buffer.concat(pieces).toString("utf8");
  if (type === "application/x-www-form-urlencoded" || (type === "" && text === ""))
    return fieldsOf([...new URLSearchParams(text)]);
  if (type === "application/json") return fieldsOf(membersIn(text));
  throw new Fault("invalid_content_type", "Send a form: application/x-www-form-urlencoded. JSON is read, too.");
}

function fieldsOf(pairs: readonly [string, string][]): Fields {
  const fields = new Map(pairs);
  if (fields.size < pairs.length) throw new Fault("invalid_value", "A field of the form came twice. Send each once.");
  return fields;
}

function membersIn(text: string): [string, string][] {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== "object" || value === null || Array.isArray(value)) throw new TypeError("no object");
    return Object.entries(value).filter((pair): pair is [string, string] => typeof pair[1] === "string");
  } catch {
    throw new Fault("invalid_value", "The body is not a JSON object.");
  }
}
