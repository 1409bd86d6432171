/** POST /v1/messages and /v1/messages/count_tokens in the contract. */
import {
  CountTokensRequest,
  Message,
  MessageStreamEvent,
  MessagesRequest,
  TokenEstimate,
} from "../../../protocol/anthropic-messages/contract.ts";
import { credentialFaults } from "../faults.ts";
import { messagesLimitHeaderNames, messagesRefusalHeaderNames, usageHeaderNames } from "../headers.ts";
import type { Operation } from "../operation.ts";
import { exampleAt, json, pixel, weather } from "./examples.ts";

const path = "/v1/messages";
const weatherTool = { name: weather.name, description: weather.description, input_schema: weather.schema };
const example = exampleAt(path);
const countExample = exampleAt(`${path}/count_tokens`);

const usage = {
  input_tokens: 19,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  output_tokens: 7,
};
const message = {
  id: "msg_019a9e0c52c07c3fb1d2a54e8d3f6b71",
  type: "message",
  role: "assistant",
  model: "vendor/model",
  content: [{ type: "text", text: "Hello! How can I help?" }],
  stop_reason: "end_turn",
  stop_sequence: null,
  usage,
};
const streamed = [
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

export const createMessage: Operation = {
  operationId: "createMessage",
  method: "post",
  path,
  tag: "Inference",
  summary: "Create a message",
  description:
    "Chat completions in the words of Messages: the same models, scopes, limits and prices. What the model lacks is refused and never silently dropped, hints (`thinking`, `output_config.effort`) excepted. Any `anthropic-version` and `anthropic-beta` is accepted.",
  scope: "inference:create",
  request: MessagesRequest,
  success: {
    description: "The message, or a stream of its events when `stream` is true.",
    headers: [...usageHeaderNames, "x-service-usage-source", ...messagesLimitHeaderNames],
    content: {
      [json]: { schema: Message, example: message },
      "text/event-stream": {
        schema: MessageStreamEvent,
        grammar: "messages",
        description:
          "Each event has an `event:` line with its type and a `data:` line that holds it (`MessageStreamEvent`): `message_start`, then blocks one after the other, each from `content_block_start` to `content_block_stop`, then `message_delta` with the totals and `message_stop`. `ping` may stand anywhere between. A failure in mid-stream is an `error` event, which ends it.",
        example: streamed,
      },
    },
  },
  faults: [...credentialFaults, "model_not_allowed"],
  otherFaults: true,
  otherFaultHeaders: messagesRefusalHeaderNames,
  faultShape: "messages",
  examples: [
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
          schema: {
            type: "object",
            properties: { city: { type: "string" }, country: { type: "string" } },
            required: ["city", "country"],
            additionalProperties: false,
          },
        },
      },
    }),
  ],
};

export const countTokens: Operation = {
  operationId: "countTokens",
  method: "post",
  path: `${path}/count_tokens`,
  tag: "Inference",
  summary: "Count the tokens of a message",
  description:
    "How many input tokens a message would have. Counted with the model's own tokenizer and chat template where the service has them, else estimated from what its engine has reported of other requests. It costs nothing, opens no usage window and is not held to limits.",
  scope: "any",
  request: CountTokensRequest,
  success: {
    description: "The count.",
    headers: [],
    content: { [json]: { schema: TokenEstimate, example: { input_tokens: 19 } } },
  },
  faults: [...credentialFaults.filter((code) => code !== "missing_scope"), "model_not_allowed"],
  otherFaults: true,
  faultShape: "messages",
  examples: [
    countExample("text", "A question", [], {
      system: "You answer in one sentence.",
      messages: [{ role: "user", content: "Why is the sky blue?" }],
    }),
    countExample("tools", "With tools", ["tools"], { messages: [weather.question], tools: [weatherTool] }),
  ],
};
