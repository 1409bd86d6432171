/**
 * Extracts the arguments of a tool call, which are one JSON object. Engines may write nothing at all, blanks before the
 * object, surplus braces after it, or something else; only the object is kept. The end of the object is detected while
 * it arrives, so that a call's block can end there, and not only with the whole answer.
 */
import { isObject, type JsonObject } from "./json.ts";

/** Reads pieces in order. Each `push` returns the part of the piece that belongs to the object. */
export class ToolInput {
  /** Whether the object has been closed. Text that follows is not part of it. */
  complete = false;
  #broken = false;
  #depth = 0;
  #inText = false;
  #escaped = false;

  push(piece: string): string {
    if (this.complete || this.#broken) return "";
    let start = 0;
    if (this.#depth === 0) {
      while (start < piece.length && isBlank(piece.charCodeAt(start))) start += 1;
      if (start === piece.length) return "";
      if (piece[start] !== "{") {
        this.#broken = true;
        return "";
      }
    }
    for (let at = start; at < piece.length; at++) {
      this.#step(piece.charCodeAt(at));
      if (!this.complete) continue;
      return piece.slice(start, at + 1);
    }
    return piece.slice(start);
  }

  /** Whether this piece may close the object, or comes after its end. The piece is only examined, and not consumed. */
  mayEnd(piece: string): boolean {
    return this.complete || closing.test(piece);
  }

  #step(code: number): void {
    if (this.#inText) {
      if (this.#escaped) this.#escaped = false;
      else if (code === backslash) this.#escaped = true;
      else if (code === quote) this.#inText = false;
    } else if (code === quote) this.#inText = true;
    else if (code === openBrace || code === openBracket) this.#depth += 1;
    else if (code === closeBrace || code === closeBracket) {
      this.#depth -= 1;
      this.complete = this.#depth === 0;
    }
  }
}

const quote = 0x22;
const backslash = 0x5c;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const openBracket = 0x5b;
const closeBracket = 0x5d;

const closing = /[}\]]/;

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}

/** The JSON object in a whole text; empty if there is none, or if it was cut off. */
export function toolInputOf(written: string): JsonObject {
  // Most texts are the object and nothing else, and are parsed at once.
  return objectIn(written) ?? objectIn(new ToolInput().push(written)) ?? {};
}

function objectIn(text: string): JsonObject | null {
  try {
    const value = JSON.parse(text, unusual.test(text) ? asWritten : undefined);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

/**
 * Matches a text with an escape of half a surrogate pair, or with more digits in a row than a number may hold exactly.
 */
const unusual = /\\u[dD][89a-fA-F]|\d{16}/;
const manyDigits = /\d{16}/;

/**
 * A JSON reviver. It replaces a lone surrogate, which the model wrote as an escape, by U+FFFD, and keeps the digits of
 * numbers such as long ids.
 */
function asWritten(_: string, value: unknown, { source = "" }: Written = {}): unknown {
  if (typeof value === "string") return value.toWellFormed();
  return typeof value === "number" && manyDigits.test(source) ? raw(source) : value;
}

/** A value that JSON.stringify writes as this text. */
const raw = (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON;

/**
 * Parses a body or an answer as JSON.parse does, but the numbers in the `input` of each call of Messages keep their
 * digits, such as those of ids of 64 bits. A text without such numbers costs next to nothing more.
 */
export function parsedWithInputs(text: string): unknown {
  if (!text.includes(`"${callType}"`) || !manyDigits.test(text)) return JSON.parse(text);
  /** For each object and list, the members that are numbers with many digits, with their digits as written. */
  const found = new Map<unknown, [name: string, source: string][]>();
  return JSON.parse(text, function (this: JsonObject, name: string, value: unknown, { source = "" }: Written = {}) {
    if (typeof value === "number" && manyDigits.test(source)) {
      found.set(this, [...(found.get(this) ?? []), [name, source]]);
    } else if (name === "input" && this.type === callType && found.size > 0) keepDigits(value, found);
    return value;
  });
}

type Written = { source?: string };
const callType = "tool_use";

function keepDigits(value: unknown, found: ReadonlyMap<unknown, [name: string, source: string][]>): void {
  if (typeof value !== "object" || value === null) return;
  for (const inner of Object.values(value)) keepDigits(inner, found);
  for (const [name, source] of found.get(value) ?? []) (value as JsonObject)[name] = raw(source);
}
