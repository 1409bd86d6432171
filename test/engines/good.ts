// The responses of an engine that follows its protocol, in each protocol.

import type { Client } from "./case.ts";

export const goodText = "SPARE OK";

export function good(protocol: Client): { stream: string; whole: string } {
  return answers[protocol](goodText);
}

const answers: Record<Client, (text: string) => { stream: string; whole: string }> = {
  chat(text) {
    const usage = { prompt_tokens: 20, completion_tokens: 3, total_tokens: 23 };
    const chunk = (choices: object[], more = {}) => ({ id: "c1", object: "chat.completion.chunk", choices, ...more });
    return {
      stream: sse(
        chunk([{ index: 0, delta: { role: "assistant", content: text }, finish_reason: null }]),
        chunk([{ index: 0, delta: {}, finish_reason: "stop" }]),
        chunk([], { usage }),
        "[DONE]",
      ),
      whole: JSON.stringify({
        id: "c1",
        choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content: text } }],
        usage,
      }),
    };
  },
  messages(text) {
    const usage = { input_tokens: 20, output_tokens: 3 };
    const message = { id: "m1", type: "message", role: "assistant", model: "m" };
    const end = { stop_reason: "end_turn", stop_sequence: null };
    return {
      stream: named(
        { type: "message_start", message: { ...message, content: [], usage: { input_tokens: 20, output_tokens: 0 } } },
        { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
        { type: "content_block_delta", index: 0, delta: { type: "text_delta", text } },
        { type: "content_block_stop", index: 0 },
        { type: "message_delta", delta: end, usage: { output_tokens: 3 } },
        { type: "message_stop" },
      ),
      whole: JSON.stringify({ ...message, ...end, content: [{ type: "text", text }], usage }),
    };
  },
  responses(text) {
    const usage = { input_tokens: 20, output_tokens: 3, total_tokens: 23 };
    const output = [{ type: "message", id: "i1", role: "assistant", content: [{ type: "output_text", text }] }];
    const response = { id: "r1", status: "completed", output, usage };
    return {
      stream: named(
        { type: "response.created", response: { id: "r1", status: "in_progress", output: [] } },
        { type: "response.output_text.delta", output_index: 0, item_id: "i1", content_index: 0, delta: text },
        { type: "response.completed", response },
      ),
      whole: JSON.stringify(response),
    };
  },
};

function sse(...data: (object | string)[]): string {
  return data.map((one) => `data: ${typeof one === "string" ? one : JSON.stringify(one)}\n\n`).join("");
}

function named(...events: { type: string; [field: string]: unknown }[]): string {
  return events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
}
