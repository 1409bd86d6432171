/** One part of an answer, as text: what a tokenizer counts. */
import type { PartHead } from "./event.ts";

export interface AnswerPart {
  kind: PartHead["kind"];
  /** Of a call; else "". */
  toolName: string;
  text: string;
}
