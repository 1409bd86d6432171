/** One part of an answer as text, for a tokenizer to count. */
import type { PartHead } from "./event.ts";

export interface AnswerPart {
  kind: PartHead["kind"];
  /** The name of the called tool; "" if the part is no call. */
  toolName: string;
  text: string;
}
