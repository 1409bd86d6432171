/**
 * Opaque values of an engine's answer that the engine wants back with the next request, such as Gemini's signature of a
 * call. They travel as the signature of a reasoning part, which clients of all protocols return unchanged, and go back
 * only to the dialect and model that made them (dialects/coming-back.ts). They are bounded in size, and nothing trusts
 * them. Pure.
 */
import { isObject, type JsonObject, textOf } from "./json.ts";

/** One opaque value, and where it comes from. */
export interface Carried {
  /** The public id of the model that made the value. */
  model: string;
  /** The mark of the engine's dialect (`Dialect.mark`). */
  by: string;
  /** The path of the value's field, joined by dots. */
  field: string;
  /** The id of the call that has the field. Absent: the message itself has the field. */
  callId?: string;
  /** A text if a call has the field, a list of objects if a message has it. */
  value: string | JsonObject[];
}

/** The most characters of a value, and of all values of a request together. */
export const carriedCharacters_max = 64 * 1024;
export const carriedTotal_max = 1024 * 1024;

/**
 * The text with which signatures that hold an opaque value begin. Its length is a multiple of three, so that its base64
 * is also the beginning of the whole signature's base64.
 */
const mark = "service:carried.1:";
const head = btoa(mark);

/** The signature that holds the value; undefined if the value is too large. */
export function signatureFor(carried: Carried): string | undefined {
  const json = JSON.stringify(carried).replace(/[\u0080-\uffff]/g, escaped);
  return json.length > carriedCharacters_max ? undefined : btoa(mark + json);
}

function escaped(letter: string): string {
  return `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

export function isCarried(signature: string | undefined): signature is string {
  return signature?.startsWith(head) === true;
}

/** The value in a signature; null if the signature holds none. */
export function carriedIn(signature: string | undefined): Carried | null {
  if (!isCarried(signature) || signature.length > 2 * carriedCharacters_max) return null;
  let found: unknown;
  try {
    found = JSON.parse(atob(signature).slice(mark.length));
  } catch {
    return null;
  }
  if (!isObject(found)) return null;
  const { model, by, field, callId, value } = found;
  const isValue = typeof value === "string" || (Array.isArray(value) && value.every(isObject));
  if (!isValue || [model, by, field].some((text) => textOf(text) === "")) return null;
  const isOfCall = typeof callId === "string";
  if (isOfCall !== (typeof value === "string")) return null;
  return { ...(found as unknown as Carried) };
}

/** A copy of the object with the value at this path. */
export function withValue(object: JsonObject, path: readonly string[], value: unknown): JsonObject {
  const [first, ...rest] = path;
  if (first === undefined) return object;
  const inner = isObject(object[first]) ? object[first] : {};
  return { ...object, [first]: rest.length === 0 ? value : withValue(inner, rest, value) };
}
