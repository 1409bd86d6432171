/** The codec of `/v1/responses/compact`, which answers with the user's newest messages, unchanged, and a summary. */
import type { Result } from "../../core/inference/result.ts";
import type { CallerCodec } from "../../core/protocol/codec.ts";
import { openaiResponsesCaller } from "../../core/protocol/openai-responses/codec.ts";
import type { InputItem, MessageItem, ResponsesRequest } from "../../core/protocol/openai-responses/contract.ts";
import { compactionItem } from "../../core/protocol/openai-responses/encode-response.ts";
import { conversationOf, itemIdOf, withInput } from "../../core/protocol/openai-responses/references.ts";
import { encodeUsage } from "../../core/protocol/openai-responses/usage.ts";
import type { CompactedResponse, RetainedMessage } from "./contract.ts";

/** The answer is never streamed. */
export const openaiCompactCaller: CallerCodec<ResponsesRequest, CompactedResponse> = {
  ...openaiResponsesCaller,
  request: { ...openaiResponsesCaller.request, remainder: compactRemainder },
  response: { encode: encodeCompacted },
};

function encodeCompacted(result: Result, { input }: ResponsesRequest): CompactedResponse {
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

/** The answer is written from the user's newest messages, and the item that asks for the compaction. */
function compactRemainder(wire: ResponsesRequest): ResponsesRequest {
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
