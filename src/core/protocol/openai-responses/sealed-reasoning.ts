/**
 * The `encrypted_content` of reasoning, which clients keep and send back unread. The AI SDK drops the text of reasoning
 * and keeps only this field, so the field contains the text, the engine's proof (a signature or encrypted reasoning)
 * and the model. It is not secret. If the next request is for another model, the proof is left out, because engines
 * refuse signatures of other models.
 */
import type { ReasoningPart } from "../../inference/request.ts";
import { textOf } from "../json.ts";

const mark = "reasoning.1:";

type Proof = Pick<ReasoningPart, "signature" | "encrypted">;

export function seal(model: string, text: string, { signature, encrypted }: Proof): string {
  return mark + JSON.stringify({ model, text, signature, encrypted });
}

/** The reasoning in `encrypted_content`; null if another service encrypted it, which no engine here could read. */
export function unseal(sealed: string, model: string): ReasoningPart | null {
  if (!sealed.startsWith(mark)) return null;
  let value: Record<string, unknown>;
  try {
    value = JSON.parse(sealed.slice(mark.length)) as Record<string, unknown>;
  } catch {
    return null;
  }
  const part: ReasoningPart = { kind: "reasoning", text: textOf(value?.text) };
  if (value?.model !== model) return part;
  if (typeof value.signature === "string") part.signature = value.signature;
  if (typeof value.encrypted === "string") part.encrypted = value.encrypted;
  return part;
}
