/** Returns what is wrong with a Messages stream, or null: docs/design/protocols.md, Messages streams. */
import type { SseMessage } from "../../../../src/core/sse/decode.ts";

interface WireEvent {
  type: string;
  index?: number;
  content_block?: { type: string };
  delta?: { type?: string };
  message?: { usage?: { input_tokens?: number } };
}

const deltasOf: Record<string, string[]> = {
  text: ["text_delta", "citations_delta"],
  thinking: ["thinking_delta", "signature_delta"],
  redacted_thinking: [],
  tool_use: ["input_json_delta"],
};

export function streamProblem(messages: readonly SseMessage[]): string | null {
  let started = false;
  let blocks = 0;
  let open: string | null = null;
  let summed = false;
  let over = false;
  for (const [at, { event: name, data }] of messages.entries()) {
    const event = JSON.parse(data) as WireEvent;
    if (name !== event.type) return `event ${name} with data of ${event.type}, at ${at}`;
    if (over) return `${name} after the end, at ${at}`;
    if (name === "error") {
      over = true;
      continue;
    }
    if (name === "message_start") {
      if (started) return "a second message_start";
      started = true;
      continue;
    }
    if (!started) return `${name} before message_start`;
    if (name === "ping") continue;
    if (summed && name !== "message_stop") return `${name} after message_delta`;
    switch (name) {
      case "content_block_start":
        if (open !== null) return `block ${event.index} begins inside another`;
        if (event.index !== blocks) return `block ${event.index} where ${blocks} was next`;
        blocks += 1;
        open = event.content_block?.type ?? "";
        break;
      case "content_block_delta":
        if (open === null || event.index !== blocks - 1) return `a delta of block ${event.index}, which is not open`;
        if (!deltasOf[open]?.includes(event.delta?.type ?? "")) return `${event.delta?.type} in a block of ${open}`;
        break;
      case "content_block_stop":
        if (open === null || event.index !== blocks - 1) return `the stop of block ${event.index}, which is not open`;
        open = null;
        break;
      case "message_delta":
        if (open !== null) return "message_delta inside a block";
        summed = true;
        break;
      case "message_stop":
        if (!summed) return "message_stop without message_delta";
        over = true;
        break;
      default:
        return `an event that nobody knows: ${name}`;
    }
  }
  return over ? null : "no end";
}
