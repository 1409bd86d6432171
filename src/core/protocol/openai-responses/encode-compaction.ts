/** Writes the answer to a compaction: its texts, as one item. */
import { leftOutNotice, noSummary } from "../../inference/compaction.ts";
import type { Result } from "../../inference/result.ts";
import type {
  CompactedResponse,
  InputItem,
  MessageItem,
  OutputCompaction,
  ResponseObject,
  ResponsesRequest,
  RetainedMessage,
} from "./contract.ts";
import { conversationOf, itemIdOf, withInput } from "./references.ts";
import { begunResponse, endedResponse, outcomeOf } from "./response-object.ts";
import { sealCompaction } from "./sealed-compaction.ts";
import { encodeUsage } from "./usage.ts";

/** Writes the response with the summary. Throws a Fault if the model wrote no text. */
export function encodeCompaction(result: Result, wire: ResponsesRequest, endedAtSeconds?: number): ResponseObject {
  const { usage, reason } = result;
  const output = [compactionItem(result)];
  const ended = { output, usage, outcome: outcomeOf(reason), atSeconds: endedAtSeconds };
  return endedResponse(begunResponse(wire, result), ended);
}

/** The summary, with notices of turns that were left out and of a summary that breaks off. */
function compactionItem({ responseId, parts, reason, leftOutTurns = 0 }: Result, index = 0): OutputCompaction {
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

/** The answer of `/v1/responses/compact`: the newest messages of the user, unchanged, and the summary. */
export function encodeCompacted(result: Result, { input }: ResponsesRequest): CompactedResponse {
  const { responseId, createdAtSeconds, usage } = result;
  const retained = (typeof input === "string" ? [] : input).filter(isUsers);
  const messages = retained.map(({ content }, at): RetainedMessage => {
    const parts = typeof content === "string" ? [{ type: "input_text" as const, text: content }] : content;
    const id = itemIdOf(responseId, "message", at);
    return { id, type: "message", status: "completed", role: "user", content: [...parts] };
  });
  return {
    id: responseId,
    object: "response.compaction",
    created_at: createdAtSeconds,
    output: [...messages, compactionItem(result, messages.length)],
    usage: encodeUsage(usage),
  };
}

/** The most characters of retained messages, so that they leave room in the smallest contexts. */
const retained_chars_max = 32_768;

/**
 * The part of the request that is needed to write its answer: the newest messages of the user, and the item that asks
 * for the compaction.
 */
export function compactRemainder(wire: ResponsesRequest): ResponsesRequest {
  const retained: InputItem[] = [{ type: "compaction_trigger" }];
  let chars = 0;
  for (const { item } of conversationOf(wire).reverse()) {
    if (!isUsers(item)) continue;
    chars += JSON.stringify(item.content).length;
    if (chars > retained_chars_max) break;
    retained.unshift(item);
  }
  return withInput(wire, retained);
}

function isUsers(item: InputItem): item is MessageItem {
  return item.type === "message" && item.role === "user";
}
