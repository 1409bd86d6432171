/** The examples of Responses in the contract: requests that work as written, and their answers. */

import { exampleAt } from "../../../core/operations/examples.ts";
import type { Example } from "../../../core/operations/operation.ts";
import { path } from "../../../core/operations/responses.ts";
import { citySchema, pixel, weather } from "./shared.ts";

const weatherTool = {
  type: "function",
  name: weather.name,
  description: weather.description,
  parameters: weather.schema,
};
const example = exampleAt(path);

const hex = "019a9e0c52c07c3fb1d2a54e8d3f6b71";
const id = `resp_${hex}`;
const begun = {
  id,
  object: "response",
  created_at: 1795230000,
  completed_at: null,
  status: "in_progress",
  error: null,
  incomplete_details: null,
  model: "vendor/model",
  output: [],
  usage: null,
  previous_response_id: null,
  instructions: null,
  tools: [],
  tool_choice: "auto",
  parallel_tool_calls: true,
  max_output_tokens: null,
  max_tool_calls: null,
  temperature: 1,
  top_p: 1,
  presence_penalty: 0,
  frequency_penalty: 0,
  top_logprobs: 0,
  text: { format: { type: "text" } },
  reasoning: { effort: null, summary: null },
  truncation: "disabled",
  store: true,
  background: false,
  service_tier: "default",
  metadata: {},
  safety_identifier: null,
  prompt_cache_key: null,
};
const text = "Hello! How can I help?";
const part = { type: "output_text", text, annotations: [], logprobs: [] };
const message = { id: `msg_${hex}0000`, type: "message", status: "completed", role: "assistant", content: [part] };
export const completed = {
  ...begun,
  completed_at: 1795230001,
  status: "completed",
  output: [message],
  usage: {
    input_tokens: 19,
    input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
    output_tokens: 7,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 26,
  },
};
const place = { item_id: message.id, output_index: 0, content_index: 0 };
const events = [
  { type: "response.created", response: begun },
  { type: "response.in_progress", response: begun },
  {
    type: "response.output_item.added",
    output_index: 0,
    item: { ...message, status: "in_progress", content: [] },
  },
  { type: "response.content_part.added", ...place, part: { ...part, text: "" } },
  { type: "response.output_text.delta", ...place, delta: text, logprobs: [] },
  { type: "response.output_text.done", ...place, text, logprobs: [] },
  { type: "response.content_part.done", ...place, part },
  { type: "response.output_item.done", output_index: 0, item: message },
  { type: "response.completed", response: completed },
];
export const responseStream = [
  ...events.map((event, at) => `event: ${event.type}\ndata: ${JSON.stringify({ ...event, sequence_number: at })}\n\n`),
  "data: [DONE]\n\n",
].join("");

const compaction = {
  id: `cmp_${hex}0001`,
  type: "compaction",
  encrypted_content: "compaction.1:Goal: the user plans a trip to Oslo in May, by train.",
};
export const compacted = {
  id,
  object: "response.compaction",
  created_at: 1795230000,
  output: [
    {
      id: `msg_${hex}0000`,
      type: "message",
      status: "completed",
      role: "user",
      content: [{ type: "input_text", text: "Plan a trip to Oslo." }],
    },
    compaction,
  ],
  usage: completed.usage,
};
const talk = [
  { role: "user", content: "Plan a trip to Oslo." },
  { role: "assistant", content: "When do you want to go, and how?" },
  { role: "user", content: "In May, by train." },
];
const compactExample = exampleAt(`${path}/compact`);
export const compactRequests: Example[] = [
  compactExample("conversation", "A conversation to go on from", [], { input: talk }),
];
const countExample = exampleAt(`${path}/input_tokens`);
export const countRequests: Example[] = [countExample("conversation", "A conversation", [], { input: talk })];

export const requests: Example[] = [
  example("text", "A question", [], { input: "Why is the sky blue?" }),
  example("streamed", "Streamed", [], { input: "Tell me a short story.", stream: true }, "text/event-stream"),
  example("instructions", "Instructions, and items of a conversation", [], {
    instructions: "You answer in one sentence.",
    input: [
      { role: "user", content: "Why is the sky blue?" },
      { role: "assistant", content: "Air scatters blue light more than red." },
      { role: "user", content: [{ type: "input_text", text: "And the sunset?" }] },
    ],
    store: false,
  }),
  example("tools", "A tool that the caller runs", ["tools"], {
    input: [weather.question],
    tools: [weatherTool],
    tool_choice: "auto",
  }),
  example("tool_result", "The result of a tool", ["tools"], {
    input: [
      weather.question,
      { type: "function_call", call_id: "call_1", name: "get_weather", arguments: '{"place":"Oslo"}' },
      { type: "function_call_output", call_id: "call_1", output: "4 degrees, light rain" },
    ],
    tools: [weatherTool],
  }),
  example("image", "With an image", ["vision"], {
    input: [
      {
        role: "user",
        content: [
          { type: "input_text", text: "Which colour is this?" },
          { type: "input_image", image_url: `data:image/png;base64,${pixel}` },
        ],
      },
    ],
  }),
  example("reasoning", "With little reasoning", ["reasoning"], {
    input: "Is 1009 a prime number?",
    reasoning: { effort: "low" },
    max_output_tokens: 512,
  }),
  example("compaction", "A conversation to go on from, as a summary", [], {
    input: [...talk, { type: "compaction_trigger" }],
    store: false,
  }),
  example("compacted", "A question about what was summarized", [], {
    input: [compaction, { role: "user", content: "Where did I want to go?" }],
  }),
  example("structured_output", "An answer in a given JSON schema", ["structured_output"], {
    input: "Name a city and its country.",
    text: {
      format: {
        type: "json_schema",
        name: "city",
        strict: true,
        schema: citySchema,
      },
    },
  }),
];
