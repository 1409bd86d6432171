/** The examples of chat completions in the contract: requests that work as written, and their answers. */

import { path } from "../../../core/operations/chat.ts";
import { exampleAt } from "../../../core/operations/examples.ts";
import type { Example } from "../../../core/operations/operation.ts";
import { citySchema, pixel, weather } from "./shared.ts";

const weatherTool = {
  type: "function",
  function: { name: weather.name, description: weather.description, parameters: weather.schema },
};
const example = exampleAt(path);

export const completion = {
  id: "chatcmpl-019a9e0c52c07c3fb1d2a54e8d3f6b71",
  object: "chat.completion",
  created: 1795230000,
  model: "vendor/model",
  choices: [
    {
      index: 0,
      message: { role: "assistant", content: "Hello! How can I help?", refusal: null },
      logprobs: null,
      finish_reason: "stop",
    },
  ],
  usage: { prompt_tokens: 19, completion_tokens: 7, total_tokens: 26 },
};

const chunk = (delta: object, finish_reason: string | null) => {
  const head = { id: completion.id, object: "chat.completion.chunk", created: 1795230000, model: "vendor/model" };
  return `data: ${JSON.stringify({ ...head, choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
};

export const completionStream = [
  chunk({ role: "assistant", content: "" }, null),
  chunk({ content: "Hello!" }, null),
  chunk({}, "stop"),
  "data: [DONE]\n\n",
].join("");

export const requests: Example[] = [
  example("plain", "A question", [], {
    messages: [
      { role: "system", content: "Be brief." },
      { role: "user", content: "Hello!" },
    ],
  }),
  example(
    "streamed",
    "Streamed, with the usage at the end",
    [],
    { messages: [{ role: "user", content: "Hello!" }], stream: true, stream_options: { include_usage: true } },
    "text/event-stream",
  ),
  example("tools", "With a tool that the model may call", ["tools"], {
    messages: [weather.question],
    tools: [weatherTool],
    tool_choice: "auto",
  }),
  example("tool_result", "With the result of a tool call", ["tools"], {
    messages: [
      weather.question,
      {
        role: "assistant",
        content: null,
        tool_calls: [
          { id: "call_1", type: "function", function: { name: "get_weather", arguments: '{"place":"Oslo"}' } },
        ],
      },
      { role: "tool", tool_call_id: "call_1", content: "4 degrees, light rain" },
    ],
    tools: [weatherTool],
  }),
  example("image", "With an image", ["vision"], {
    messages: [
      {
        role: "user",
        content: [
          { type: "text", text: "Which colour is this?" },
          { type: "image_url", image_url: { url: `data:image/png;base64,${pixel}` } },
        ],
      },
    ],
  }),
  example("structured_output", "An answer in a given JSON schema", ["structured_output"], {
    messages: [{ role: "user", content: "Name a city and its country." }],
    response_format: {
      type: "json_schema",
      json_schema: {
        name: "city",
        strict: true,
        schema: citySchema,
      },
    },
  }),
  example("reasoning", "With little reasoning", ["reasoning"], {
    messages: [{ role: "user", content: "Is 1009 a prime number?" }],
    reasoning_effort: "low",
    max_completion_tokens: 512,
  }),
  example("logprobs", "With log probabilities", ["logprobs"], {
    messages: [{ role: "user", content: "Say yes or no." }],
    logprobs: true,
    top_logprobs: 2,
    max_completion_tokens: 8,
  }),
];
