/** Parses the bytes of a body as JSON, strictly UTF-8, bounded in depth. Faults: invalid_json. Pure. */
import { Fault } from "../inference/fault.ts";
import type { BodyItems } from "./body-items.ts";
import { isQuick, type Parsed, parseInSteps } from "./json-steps.ts";
import { type BodyScan, tooDeep } from "./scan.ts";

export interface ScannedBody {
  bytes: Uint8Array;
  /** The scan of the body; null: the body was too small to cost much, and was not scanned. */
  shape: BodyScan | null;
}

const strict = new TextDecoder("utf-8", { fatal: true });

/** Parses in one step, however long it takes. */
export function parseJsonBody(bytes: Uint8Array): unknown {
  if (bytes.byteLength === 0) throw new Fault("invalid_json", "The request has no body. Send a JSON object.");
  let text: string;
  try {
    text = strict.decode(bytes);
  } catch (cause) {
    throw noUtf8(cause);
  }
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw noJson(whereOf(cause), cause);
  }
}

/** As `parseJsonBody`, with pauses if it could take long. A body that was not scanned has its depth checked here. */
export function* parsingSteps({ bytes, shape }: ScannedBody, depth_max: number): Generator<void, Parsed, void> {
  if (shape === null) {
    const value = parseJsonBody(bytes);
    if (isDeeper(value, depth_max)) throw tooDeep(depth_max);
    return { value, isIntact: true };
  }
  const { items } = shape;
  const members = shape.marks ? (shape.marks.length - 1) / 2 : -1;
  const known = items && members >= 0 ? filled(bytes, shape, items, members) : null;
  if (known) return known;
  const parsed = yield* parsedWhole(bytes, shape);
  items?.parsed(parsed.value, members);
  return parsed;
}

function* parsedWhole(bytes: Uint8Array, shape: BodyScan): Generator<void, Parsed, void> {
  if (isQuick(shape)) return { value: parseJsonBody(bytes), isIntact: true };
  try {
    return yield* parseInSteps(bytes);
  } catch (cause) {
    throw cause instanceof SyntaxError ? noJson("", cause) : noUtf8(cause);
  }
}

/**
 * Parses only the items that were not seen before. Null: all of the body has to be parsed, also to find what is wrong
 * with it.
 */
function filled(bytes: Uint8Array, shape: BodyScan, items: BodyItems, members: number): Parsed | null {
  const { found } = items;
  if (found.items === 0) return null;
  const rest = items.remainder(bytes);
  const read = { bytes: rest.length, values: shape.values - found.values, members: shape.members - found.members };
  if (!isQuick(read)) return null;
  let value: unknown;
  try {
    value = JSON.parse(strict.decode(rest));
  } catch {
    return null;
  }
  return items.fill(value, members) ? { value, isIntact: true } : null;
}

function noUtf8(cause: unknown): Fault {
  return new Fault("invalid_json", "The request body is not valid UTF-8.", { cause });
}

function noJson(where: string, cause: unknown): Fault {
  return new Fault("invalid_json", `The request body is not valid JSON${where}.`, { cause });
}

/** The position in the parser's message. The message itself quotes the body, and must not be passed on. */
function whereOf(cause: unknown): string {
  const at = /position (\d+)/.exec(String((cause as Error)?.message))?.[1];
  return at ? ` (at position ${at})` : "";
}

/** Whether the value nests deeper than `levels` objects and arrays. */
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
