/** Writes a part of an answer as a content block, while the part arrives. */
import type { PartHead } from "../../inference/event.ts";
import type { Native } from "../../inference/request.ts";
import { ToolInput } from "../tool-input.ts";
import type { MessageWriter } from "./message-writer.ts";
import { citationsOf } from "./native.ts";
import { unsigned } from "./signature.ts";

export interface Block {
  add(delta: string): void;
  /** The frame that `add` would write. Null, and the delta is not consumed, if `add` might write several deltas. */
  frame(delta: string): string | null;
  end(signature?: string, citations?: readonly Native[]): void;
}

export function beginBlock(head: PartHead, writer: MessageWriter): Block {
  switch (head.kind) {
    case "text":
    case "refusal":
      return textBlock(writer);
    case "reasoning":
      return head.encrypted === undefined ? thinkingBlock(writer) : redactedBlock(writer, head.encrypted);
    case "tool-call":
      return toolBlock(writer, head.callId, head.toolName);
  }
}

/** Writes a block of text. An empty text makes no block: clients would send the block back, and be refused. */
function textBlock(writer: MessageWriter): Block {
  let isOpen = false;
  return {
    add(text) {
      if (text === "") return;
      if (!isOpen) writer.open({ type: "text", text: "" }, { type: "text_delta", text: "" });
      isOpen = true;
      writer.delta({ type: "text_delta", text });
    },
    frame: (text) => writer.frame(text),
    end(_, citations = []) {
      if (!isOpen) return;
      for (const citation of citationsOf(citations)) writer.delta({ type: "citations_delta", citation });
      writer.close();
    },
  };
}

function thinkingBlock(writer: MessageWriter): Block {
  writer.open({ type: "thinking", thinking: "", signature: "" }, { type: "thinking_delta", thinking: "" });
  return {
    add(thinking) {
      if (thinking !== "") writer.delta({ type: "thinking_delta", thinking });
    },
    frame: (thinking) => writer.frame(thinking),
    /** Writes the signature in one delta: clients replace the signature with each delta, and append nothing. */
    end(signature = unsigned) {
      if (signature !== "") writer.delta({ type: "signature_delta", signature });
      writer.close();
    },
  };
}

function redactedBlock(writer: MessageWriter, data: string): Block {
  writer.open({ type: "redacted_thinking", data });
  return { add() {}, frame: () => "", end: () => writer.close() };
}

/**
 * Writes the block of a tool call. The block ends when the call's arguments are complete, even if the engine has not
 * ended it yet, so that clients need not wait for the rest of the answer.
 */
function toolBlock(writer: MessageWriter, id: string, name: string): Block {
  const input = new ToolInput();
  writer.open({ type: "tool_use", id, name, input: {} }, { type: "input_json_delta", partial_json: "" });
  return {
    add(delta) {
      const partial_json = input.push(delta);
      if (partial_json !== "") writer.delta({ type: "input_json_delta", partial_json });
      if (input.complete) writer.close();
    },
    frame: (delta) => (input.mayEnd(delta) ? null : writer.frame(input.push(delta))),
    end: () => writer.close(),
  };
}
