/** A whole answer to a compaction → a Response whose one item is the summary. What else the model said is none of it. */
import { leftOutNotice, noSummary } from "../../inference/compaction.ts";
import type { Result } from "../../inference/result.ts";
import { cutBy } from "./answer-items.ts";
import type { OutputCompaction, ResponseObject, ResponsesRequest } from "./contract.ts";
import { itemIdOf } from "./references.ts";
import { begunResponse, endedResponse } from "./response-object.ts";
import { sealCompaction } from "./sealed-compaction.ts";

/** Throws where nothing was said. */
export function encodeCompaction(result: Result, wire: ResponsesRequest, endedAtSeconds?: number): ResponseObject {
  const reason = cutBy(result.reason);
  return endedResponse(begunResponse(wire, result), {
    output: [compactionItem(result)],
    usage: result.usage,
    outcome: reason ? { status: "incomplete", reason } : { status: "completed" },
    atSeconds: endedAtSeconds,
  });
}

/** The summary, between what has to be known of it: what it leaves out, and that it breaks off. */
export function compactionItem({ responseId, parts, reason, leftOutTurns = 0 }: Result, index = 0): OutputCompaction {
  const summary = parts.map(({ head, text }) => (head.kind === "text" ? text : "")).join("");
  if (summary.trim() === "") throw noSummary();
  const told = [
    ...(leftOutTurns > 0 ? [leftOutNotice(leftOutTurns)] : []),
    summary,
    ...(cutBy(reason) === null ? [] : ["[This summary breaks off here, before its end.]"]),
  ];
  const id = itemIdOf(responseId, "compaction", index);
  return { id, type: "compaction", encrypted_content: sealCompaction(told.join("\n\n")) };
}
