/** One part of an answer, as text: what a tokenizer counts. */
import type { PartHead } from "./event.ts";

export interface AnswerPart {
  kind: PartHead["kind"];
  /** The name of the tool that is called; "" where the part is no call. */
  toolName: string;
  text: string;
}
