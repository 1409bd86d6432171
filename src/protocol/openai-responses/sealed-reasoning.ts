/**
 * `encrypted_content`: what a client keeps of reasoning and sends back unread. The AI SDK forgets the text of reasoning and
 * keeps this alone, so the text travels in it, with the engine's own proof and the model that it belongs to. It hides
 * nothing, it is a place where clients leave things alone; asked of another model, the proof is left behind, because
 * engines refuse what others signed.
 */
import type { ReasoningPart } from "../../inference/request.ts";
import { textOf } from "../json.ts";

const mark = "reasoning.1:";

export type Proof = Pick<ReasoningPart, "signature" | "encrypted">;

export function seal(model: string, text: string, { signature, encrypted }: Proof): string {
  return mark + JSON.stringify({ model, text, signature, encrypted });
}

/** The reasoning that was sealed; null for what another service wrote, which no engine here could read. */
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
