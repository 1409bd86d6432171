/** Writes a whole answer as a Message. */
import type { Result, ResultPart } from "../../inference/result.ts";
import type { JsonObject } from "../json.ts";
import { toolInputOf } from "../tool-input.ts";
import type { ContentBlock, Message, MessagesRequest } from "./contract.ts";
import { citationsOf } from "./native.ts";
import { unsigned } from "./signature.ts";
import { encodeStop } from "./stop-reason.ts";
import { encodeUsage } from "./usage.ts";

export function encodeResponse(result: Result, wire: MessagesRequest): Message {
  const held = { calls: result.parts.some(isCall), refused: result.parts.some(isRefusal) };
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

/** The input of a tool call. The arguments of a custom tool are plain text, which becomes the member `input`. */
function inputOf({ custom }: { custom?: boolean }, text: string): JsonObject {
  return custom ? { input: text } : toolInputOf(text);
}

const isCall = ({ head }: ResultPart) => head.kind === "tool-call";
const isRefusal = ({ head }: ResultPart) => head.kind === "refusal";

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
      return [{ type: "tool_use", id: head.callId, name: head.toolName, input: inputOf(head, text) }];
  }
}
