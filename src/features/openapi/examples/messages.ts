/** The examples of Messages in the contract: requests that work as written, and their answers. */

import { exampleAt } from "../../../core/operations/examples.ts";
import { path } from "../../../core/operations/messages.ts";
import type { Example } from "../../../core/operations/operation.ts";
import { citySchema, pixel, weather } from "./shared.ts";

const weatherTool = { name: weather.name, description: weather.description, input_schema: weather.schema };
const example = exampleAt(path);
const countExample = exampleAt(`${path}/count_tokens`);

const usage = {
  input_tokens: 19,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  output_tokens: 7,
};
export const message = {
  id: "msg_019a9e0c52c07c3fb1d2a54e8d3f6b71",
  type: "message",
  role: "assistant",
  model: "vendor/model",
  content: [{ type: "text", text: "Hello! How can I help?" }],
  stop_reason: "end_turn",
  stop_sequence: null,
  usage,
};
export const messageStream = [
  {
    type: "message_start",
    message: { ...message, content: [], stop_reason: null, usage: { ...usage, output_tokens: 0 } },
  },
  { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
  { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hello! How can I help?" } },
  { type: "content_block_stop", index: 0 },
  { type: "message_delta", delta: { stop_reason: "end_turn", stop_sequence: null }, usage },
  { type: "message_stop" },
]
  .map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
  .join("");

export const requests: Example[] = [
  example("text", "A question", [], {
    max_tokens: 256,
    system: "You answer in one sentence.",
    messages: [{ role: "user", content: "Why is the sky blue?" }],
  }),
  example(
    "streamed",
    "Streamed",
    [],
    { max_tokens: 256, stream: true, messages: [{ role: "user", content: "Tell me a short story." }] },
    "text/event-stream",
  ),
  example("tools", "A tool that the caller runs", ["tools"], {
    max_tokens: 256,
    messages: [weather.question],
    tools: [weatherTool],
    tool_choice: { type: "auto" },
  }),
  example("tool_result", "The result of a tool", ["tools"], {
    max_tokens: 256,
    messages: [
      weather.question,
      {
        role: "assistant",
        content: [{ type: "tool_use", id: "toolu_1", name: "get_weather", input: { place: "Oslo" } }],
      },
      {
        role: "user",
        content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "4 degrees, light rain" }],
      },
    ],
    tools: [weatherTool],
  }),
  example("image", "With an image", ["vision"], {
    max_tokens: 256,
    messages: [
      {
        role: "user",
        content: [
          { type: "text", text: "Which colour is this?" },
          { type: "image", source: { type: "base64", media_type: "image/png", data: pixel } },
        ],
      },
    ],
  }),
  example("thinking", "With thinking", ["reasoning"], {
    max_tokens: 4096,
    thinking: { type: "enabled", budget_tokens: 1024 },
    messages: [{ role: "user", content: "Is 1009 a prime number?" }],
  }),
  example("structured_output", "An answer in a given JSON schema", ["structured_output"], {
    max_tokens: 256,
    messages: [{ role: "user", content: "Name a city and its country." }],
    output_config: {
      format: {
        type: "json_schema",
        schema: citySchema,
      },
    },
  }),
];

export const countRequests: Example[] = [
  countExample("text", "A question", [], {
    system: "You answer in one sentence.",
    messages: [{ role: "user", content: "Why is the sky blue?" }],
  }),
  countExample("tools", "With tools", ["tools"], { messages: [weather.question], tools: [weatherTool] }),
];
