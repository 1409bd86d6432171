// The responses of an engine in each protocol: a text of a given number of words, as events or unstreamed.

export interface Dialect {
  /** The events before the first word, the event of each word, and the events after the last word. */
  opening: object[];
  word(text: string): object;
  closing: object[];
  /** The line `[DONE]`, or whatever else ends the protocol's stream after all events; null if nothing does. */
  mark: string | null;
  whole(content: string | null): object;
}

const counts = { input_tokens: 9, output_tokens: 60 };
const chatUsage = { prompt_tokens: 9, completion_tokens: 60, total_tokens: 69 };

const chat: Dialect = {
  opening: [],
  word: (content) => ({ choices: [{ index: 0, delta: { content }, finish_reason: null }] }),
  closing: [{ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }, { choices: [], usage: chatUsage }],
  mark: "[DONE]",
  whole: (content) => ({
    choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
    usage: chatUsage,
  }),
};

const message = { id: "msg_1", type: "message", role: "assistant", model: "m", stop_sequence: null };
const messages: Dialect = {
  opening: [
    {
      type: "message_start",
      message: { ...message, content: [], stop_reason: null, usage: { ...counts, output_tokens: 0 } },
    },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
  ],
  word: (text) => ({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } }),
  closing: [
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: "end_turn", stop_sequence: null }, usage: counts },
    { type: "message_stop" },
  ],
  mark: null,
  whole: (text) => ({
    ...message,
    content: text === null ? [] : [{ type: "text", text }],
    stop_reason: "end_turn",
    usage: counts,
  }),
};

const item = { id: "item_1", type: "message", role: "assistant" };
const response = { id: "resp_1", object: "response", created_at: 1, model: "m", output: [] as object[] };
const ended = (text: string | null) => ({
  ...response,
  status: "completed",
  output:
    text === null ? [] : [{ ...item, status: "completed", content: [{ type: "output_text", text, annotations: [] }] }],
  usage: { ...counts, total_tokens: 69 },
});
const at = { item_id: "item_1", output_index: 0, content_index: 0 };
const responses = (all: string): Dialect => ({
  opening: [
    { type: "response.created", response: { ...response, status: "in_progress" } },
    { type: "response.output_item.added", output_index: 0, item: { ...item, status: "in_progress", content: [] } },
    { type: "response.content_part.added", ...at, part: { type: "output_text", text: "", annotations: [] } },
  ],
  word: (delta) => ({ type: "response.output_text.delta", ...at, delta }),
  closing: [
    { type: "response.output_text.done", ...at, text: all },
    {
      ...{ type: "response.output_item.done", output_index: 0 },
      item: { ...item, status: "completed", content: [{ type: "output_text", text: all, annotations: [] }] },
    },
    { type: "response.completed", response: ended(all) },
  ],
  mark: null,
  whole: ended,
});

/** The response format of an engine for the requested path; `all` is the complete text of its response. */
export function dialectOf(path: string, all: string): Dialect {
  if (path.endsWith("/messages")) return messages;
  return path.endsWith("/responses") ? responses(all) : chat;
}
