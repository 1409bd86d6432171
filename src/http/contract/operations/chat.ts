/** POST /v1/chat/completions in the contract. */
import { ChatCompletion, ChatCompletionChunk, ChatCompletionRequest } from "../../../protocol/openai-chat/contract.ts";
import { credentialFaults } from "../faults.ts";
import { limitHeaderNames, usageHeaderNames } from "../headers.ts";
import type { Operation } from "../operation.ts";
import { exampleAt, json, pixel, weather } from "./examples.ts";

const path = "/v1/chat/completions";
const weatherTool = {
  type: "function",
  function: { name: weather.name, description: weather.description, parameters: weather.schema },
};
const example = exampleAt(path);

const completion = {
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

export const createChatCompletion: Operation = {
  operationId: "createChatCompletion",
  method: "post",
  path,
  tag: "Inference",
  summary: "Create a chat completion",
  description:
    "Answers a conversation, at once or as server-sent events. A capability that the model lacks is refused with `unsupported_feature`, never silently dropped.",
  scope: "inference:create",
  request: ChatCompletionRequest,
  success: {
    description: "The completion, or a stream of its chunks when `stream` is true.",
    headers: [...usageHeaderNames, "x-service-usage-source", ...limitHeaderNames],
    content: {
      [json]: { schema: ChatCompletion, example: completion },
      "text/event-stream": {
        schema: ChatCompletionChunk,
        grammar: "chat",
        description:
          "Each event is one `data:` line that holds a chunk (`ChatCompletionChunk`); comment lines keep a quiet stream alive. With `stream_options.include_usage` a last chunk carries the usage and no choices. A failure in mid-stream is an event that holds an `Error`. The stream ends with exactly one `data: [DONE]`.",
        example: [
          chunk({ role: "assistant", content: "" }, null),
          chunk({ content: "Hello!" }, null),
          chunk({}, "stop"),
          "data: [DONE]\n\n",
        ].join(""),
      },
    },
  },
  faults: [
    "invalid_json",
    "invalid_content_type",
    "invalid_value",
    "missing_field",
    "unknown_field",
    "mutually_exclusive",
    "unsupported_feature",
    "context_length_exceeded",
    ...credentialFaults,
    "no_active_plan",
    "model_not_allowed",
    "model_not_found",
    "rate_limit_exceeded",
    "concurrency_limit_exceeded",
    "usage_reserved",
    "capacity_exceeded",
    "usage_limit_reached",
    "internal_error",
    "upstream_unavailable",
    "upstream_timeout",
    "overloaded",
    "draining",
    "storage_unavailable",
  ],
  otherFaults: false,
  examples: [
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
          schema: {
            type: "object",
            properties: { city: { type: "string" }, country: { type: "string" } },
            required: ["city", "country"],
            additionalProperties: false,
          },
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
  ],
};
