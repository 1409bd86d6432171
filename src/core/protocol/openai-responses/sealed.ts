/**
 * The `encrypted_content` of reasoning and of compactions, which clients keep and send back unread. It is not secret.
 *
 * The AI SDK drops the text of reasoning and keeps only this field, so the field contains the text, the engine's proof
 * (a signature or encrypted reasoning) and the model. If the next request is for another model, the proof is left out,
 * because engines refuse signatures of other models.
 */
import type { ReasoningPart } from "../../inference/request.ts";
import { textOf } from "../json.ts";

const reasoningMark = "reasoning.1:";

type Proof = Pick<ReasoningPart, "signature" | "encrypted">;

export function seal(model: string, text: string, { signature, encrypted }: Proof): string {
  return reasoningMark + JSON.stringify({ model, text, signature, encrypted });
}

/** The reasoning in `encrypted_content`; null if another service encrypted it, which no engine here could read. */
export function unseal(sealed: string, model: string): ReasoningPart | null {
  if (!sealed.startsWith(reasoningMark)) return null;
  let value: Record<string, unknown>;
  try {
    value = JSON.parse(sealed.slice(reasoningMark.length)) as Record<string, unknown>;
  } catch {
    return null;
  }
  const part: ReasoningPart = { kind: "reasoning", text: textOf(value?.text) };
  if (value?.model !== model) return part;
  if (typeof value.signature === "string") part.signature = value.signature;
  if (typeof value.encrypted === "string") part.encrypted = value.encrypted;
  return part;
}

const compactionMark = "compaction.1:";

export function sealCompaction(summary: string): string {
  return compactionMark + summary;
}

/** The summary in a compaction item. The contract refuses items of other services (contract.ts, CompactionItem). */
export function unsealCompaction(sealed: string): string {
  return sealed.slice(compactionMark.length);
}
