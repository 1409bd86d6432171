/** A whole answer → a Message. */
import type { Result, ResultPart } from "../../inference/result.ts";
import { toolInputOf } from "../tool-input.ts";
import { citationsOf } from "./citations.ts";
import type { ContentBlock, Message, MessagesRequest } from "./contract.ts";
import { unsigned } from "./signature.ts";
import { encodeStop } from "./stop-reason.ts";
import { encodeUsage } from "./usage.ts";

export function encodeResponse(result: Result, wire: MessagesRequest): Message {
  const has = (kind: ResultPart["head"]["kind"]) => result.parts.some((part) => part.head.kind === kind);
  const held = { calls: has("tool-call"), refused: has("refusal") };
  return {
    id: result.responseId,
    type: "message",
    role: "assistant",
    model: result.model,
    content: result.parts.flatMap(encodePart),
    ...encodeStop(result, held, wire),
    usage: encodeUsage(result.usage),
  };
}

function encodePart({ head, text, signature = unsigned, citations = [] }: ResultPart): ContentBlock[] {
  switch (head.kind) {
    case "text":
    case "refusal": {
      const cited = citationsOf(citations);
      return text === "" ? [] : [{ type: "text", text, ...(cited.length > 0 ? { citations: cited } : {}) }];
    }
    case "reasoning":
      if (head.encrypted !== undefined) return [{ type: "redacted_thinking", data: head.encrypted }];
      return [{ type: "thinking", thinking: text, signature }];
    case "tool-call":
      return [{ type: "tool_use", id: head.callId, name: head.toolName, input: toolInputOf(text) }];
  }
}
