/** Reads the input of a completion. Pure. */
import { invalid, notSupported, type Violation } from "../../core/protocol/violation.ts";
import type { CompletionsRequest } from "./contract.ts";
import type { Inputs } from "./passing.ts";

export type { CompletionsRequest };

/** The most output tokens if the client names no limit, as at OpenAI. */
const tokens_default = 16;

/** The request's only prompt: a text, or token ids. */
export function promptOf({ prompt }: CompletionsRequest): string | number[] {
  if (typeof prompt === "string" || typeof prompt[0] === "number") return prompt as string | number[];
  return prompt[0] as string | number[];
}

export function textsOf(wire: CompletionsRequest): string[] {
  const prompt = promptOf(wire);
  return typeof prompt === "string" ? [prompt, wire.suffix ?? ""] : [];
}

export function inputsOf(wire: CompletionsRequest): Inputs {
  const prompt = promptOf(wire);
  const suffix = Buffer.byteLength(wire.suffix ?? "");
  const isText = typeof prompt === "string";
  const tokens = prompt.length;
  return {
    count: 1,
    largest_bytes: suffix + (isText ? Buffer.byteLength(prompt) : 0),
    ids: isText || suffix > 0 ? null : { tokens, largest: tokens },
    outputTokens_max: wire.max_tokens ?? tokens_default,
  };
}

/** Explains why a prompt is refused: it violates the schema, or there are several prompts. */
export function wrongPrompt(prompt: unknown): Violation | null {
  if (prompt === undefined || prompt === null || typeof prompt === "string") return null;
  const isList = Array.isArray(prompt) && prompt.length > 0;
  if (isList && typeof prompt[0] !== "number" && prompt.length > 1)
    return notSupported("prompt", "several prompts in one request");
  return invalid("prompt", "must be a text, a list of token ids, or a list of one of them.");
}
