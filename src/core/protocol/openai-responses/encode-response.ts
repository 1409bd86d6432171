/** Writes a whole answer as a Response: its items, or for a compaction its texts as one item. */
import { leftOutNotice, noSummary } from "../../inference/compaction.ts";
import type { Result } from "../../inference/result.ts";
import { AnswerItems } from "./answer-items.ts";
import type { OutputCompaction, ResponseObject, ResponsesRequest } from "./contract.ts";
import { itemIdOf } from "./references.ts";
import { begunResponse, endedResponse, outcomeOf } from "./response-object.ts";
import { sealCompaction } from "./sealed.ts";

export function encodeResponse(result: Result, wire: ResponsesRequest, endedAtSeconds?: number): ResponseObject {
  const items = new AnswerItems(wire, result.responseId, result.model);
  const outcome = outcomeOf(result.reason);
  const last = result.parts.length - 1;
  const output = result.parts.map((part, index) =>
    items.itemOf(part, index, index === last ? outcome.status : "completed"),
  );
  const { usage } = result;
  return endedResponse(begunResponse(wire, result), { output, usage, outcome, atSeconds: endedAtSeconds });
}

/** Writes the response with the summary. Throws a Fault if the model wrote no text. */
export function encodeCompaction(result: Result, wire: ResponsesRequest, endedAtSeconds?: number): ResponseObject {
  const { usage, reason } = result;
  const output = [compactionItem(result)];
  const ended = { output, usage, outcome: outcomeOf(reason), atSeconds: endedAtSeconds };
  return endedResponse(begunResponse(wire, result), ended);
}

/** The summary, with notices of turns that were left out and of a summary that breaks off. */
export function compactionItem({ responseId, parts, reason, leftOutTurns = 0 }: Result, index = 0): OutputCompaction {
  const summary = parts.map(({ head, text }) => (head.kind === "text" ? text : "")).join("");
  if (summary.trim() === "") throw noSummary();
  const paragraphs = [
    ...(leftOutTurns > 0 ? [leftOutNotice(leftOutTurns)] : []),
    summary,
    ...(outcomeOf(reason).status === "completed" ? [] : ["[This summary breaks off here, before its end.]"]),
  ];
  const id = itemIdOf(responseId, "compaction", index);
  return { id, type: "compaction", encrypted_content: sealCompaction(paragraphs.join("\n\n")) };
}
