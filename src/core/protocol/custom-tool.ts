/**
 * Custom tools take plain text, which may have to follow a grammar. Engines know only functions, so they get a function with
 * one string `input`. The JSON of its arguments is read as it arrives, so that the text streams to the caller. If an engine
 * writes other JSON or plain text instead, that is passed on when the call has ended.
 */
import type { Tool } from "../inference/request.ts";
import { isObject } from "./json.ts";

const parameters: Readonly<Record<string, unknown>> = Object.freeze({
  type: "object",
  properties: { input: { type: "string", description: "The whole input of the tool, as plain text." } },
  required: ["input"],
  additionalProperties: false,
});

interface CustomTool {
  description?: string | null | undefined;
  grammar?: { syntax: string; definition: string } | undefined;
}

/** The function definition that an engine gets in place of a custom tool. */
export function customFunction(name: string, { description, grammar }: CustomTool): Tool {
  const rule = grammar
    ? `Its input must follow this ${grammar.syntax} grammar:\n${grammar.definition}`
    : "Its input is plain text.";
  const whole = description ? `${description}\n\n${rule}` : rule;
  return { kind: "function", name, description: whole, parameters: { ...parameters } };
}

export function customArguments(input: string): string {
  return JSON.stringify({ input });
}

/**
 * Reads the pieces of a call's JSON arguments in order. Each `push` returns the plain text that its piece completes,
 * and `end` the rest.
 */
export class CustomInput {
  #state: "head" | "text" | "over" | "other" = "head";
  /** The pieces up to the opening of the text, or all of them if no text was opened. */
  #written = "";
  /** The beginning of a JSON escape sequence whose rest has not arrived. */
  #escape = "";
  /** The first half of a surrogate pair whose second half has not arrived. */
  #high = "";

  push(piece: string): string {
    if (this.#state === "text") return this.#read(piece, 0);
    this.#written += piece;
    if (this.#state !== "head") return "";
    const opened = opening.exec(this.#written);
    if (opened) {
      this.#state = "text";
      return this.#read(this.#written, opened[0].length);
    }
    if (!couldOpen(this.#written)) this.#state = "other";
    return "";
  }

  end(): string {
    if (this.#state === "text" || this.#state === "over") return "";
    this.#state = "over";
    return plainOf(this.#written);
  }

  #read(piece: string, from: number): string {
    const out = [this.#high];
    this.#high = "";
    for (let at = from; at < piece.length; at++) {
      const letter = piece[at]!;
      if (this.#escape !== "") out.push(this.#escaped(letter));
      else if (letter === "\\") this.#escape = letter;
      else if (letter === '"') {
        this.#state = "over";
        break;
      } else {
        const end = plainTo(piece, at);
        out.push(piece.slice(at, end));
        at = end - 1;
      }
    }
    return this.#whole(out.join(""));
  }

  #whole(out: string): string {
    if (this.#state === "text" && /[\uD800-\uDBFF]$/.test(out)) {
      this.#high = out.slice(-1);
      return out.slice(0, -1);
    }
    return out;
  }

  #escaped(letter: string): string {
    this.#escape += letter;
    if (this.#escape[1] !== "u") {
      this.#escape = "";
      return escapes[letter] ?? letter;
    }
    if (this.#escape.length < 6) return "";
    const code = Number.parseInt(this.#escape.slice(2), 16);
    this.#escape = "";
    return Number.isNaN(code) ? "" : String.fromCharCode(code);
  }
}

/** The index at which the run of characters that need no decoding ends. */
function plainTo(piece: string, from: number): number {
  let at = from;
  while (at < piece.length && piece.charCodeAt(at) !== quote && piece.charCodeAt(at) !== backslash) at += 1;
  return at;
}

const quote = 0x22;
const backslash = 0x5c;

const escapes: Record<string, string> = { n: "\n", t: "\t", r: "\r", b: "\b", f: "\f" };
const opening = /^\s*\{\s*"input"\s*:\s*"/;

/** Whether the text can still become `{"input": "`, the beginning of wrapped arguments. */
function couldOpen(head: string): boolean {
  if (head.length > 64) return false;
  const bare = head.replace(/\s+/g, "");
  return '{"input":"'.startsWith(bare);
}

function plainOf(written: string): string {
  let value: unknown;
  try {
    value = JSON.parse(written);
  } catch {
    return written;
  }
  if (typeof value === "string") return value;
  if (!isObject(value)) return written;
  if (typeof value.input === "string") return value.input;
  const values = Object.values(value);
  if (values.length === 0) return "";
  return values.length === 1 && typeof values[0] === "string" ? values[0] : written;
}

/** Extracts the plain text from the complete arguments of a call. */
export function customInputOf(written: string): string {
  const reader = new CustomInput();
  return reader.push(written) + reader.end();
}
