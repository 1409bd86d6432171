/** POST /v1/responses, and what is kept of a response, in the contract. */
import Type from "typebox";
import {
  DeletedResponse,
  InputItemList,
  ResponseObject,
  ResponsesRequest,
  ResponsesStreamEvent,
} from "../../../protocol/openai-responses/contract.ts";
import { credentialFaults } from "../faults.ts";
import { limitHeaderNames, refusalHeaderNames, usageHeaderNames } from "../headers.ts";
import type { Operation, Parameter } from "../operation.ts";
import { exampleAt, json, pixel, weather } from "./examples.ts";

const path = "/v1/responses";
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
const completed = {
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
const streamed = [
  ...events.map((event, at) => `event: ${event.type}\ndata: ${JSON.stringify({ ...event, sequence_number: at })}\n\n`),
  "data: [DONE]\n\n",
].join("");

export const createResponse: Operation = {
  operationId: "createResponse",
  method: "post",
  path,
  tag: "Inference",
  summary: "Create a response",
  description:
    "Chat completions in the words of Responses: the same models, scopes, limits and prices. What the model lacks is refused and never silently dropped; a hint (`reasoning`) is not told to a model that lacks it, and hosted tools that are merely listed are left out. Unless `store` is false, in the request or by the operator's choice, the response is kept for some days: it can be gone on from by `previous_response_id`, and fetched. Without `max_output_tokens` the model's own limit holds.",
  scope: "inference:create",
  request: ResponsesRequest,
  success: {
    description: "The response, or a stream of its events when `stream` is true.",
    headers: [...usageHeaderNames, "x-service-usage-source", ...limitHeaderNames],
    content: {
      [json]: { schema: ResponseObject, example: completed },
      "text/event-stream": {
        schema: ResponsesStreamEvent,
        grammar: "responses",
        description:
          "Each event has an `event:` line with its type and a `data:` line that holds it (`ResponsesStreamEvent`): `response.created`, `response.in_progress`, then the items, each from `response.output_item.added` to `response.output_item.done`, then one of `response.completed`, `response.incomplete` and `response.failed` with the whole response. `response.in_progress` comes again while the model is silent. A failure in mid-stream is `response.failed`. The stream ends with exactly one `data: [DONE]`, which has no `event:` line.",
        example: streamed,
      },
    },
  },
  faults: [...credentialFaults, "model_not_allowed"],
  otherFaults: true,
  otherFaultHeaders: refusalHeaderNames,
  faultShape: "responses",
  examples: [
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
    example("structured_output", "An answer in a given JSON schema", ["structured_output"], {
      input: "Name a city and its country.",
      text: {
        format: {
          type: "json_schema",
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
  ],
};

const keptId: Parameter = {
  name: "id",
  in: "path",
  required: true,
  description: "The response's id.",
  schema: Type.String({ minLength: 1 }),
  example: () => id,
};

/** What can be done with a response of the calling organization that is kept. */
const ofKept = (
  operation: Pick<Operation, "operationId" | "method" | "path" | "summary" | "description" | "success"> & {
    parameters?: Parameter[];
  },
): Operation => ({
  ...operation,
  tag: "Inference",
  scope: "inference:create",
  parameters: [keptId, ...(operation.parameters ?? [])],
  faults: [...credentialFaults, "response_not_found"],
  otherFaults: true,
  otherFaultHeaders: refusalHeaderNames,
  faultShape: "responses",
  // An id is made by a response: there is none that works as written.
  examples: [],
});

export const getResponse = ofKept({
  operationId: "getResponse",
  method: "get",
  path: `${path}/{id}`,
  summary: "Fetch a response",
  description: "A response that the calling organization has stored, as it was answered.",
  success: {
    description: "The response.",
    headers: [],
    content: { [json]: { schema: ResponseObject, example: completed } },
  },
});

export const deleteResponse = ofKept({
  operationId: "deleteResponse",
  method: "delete",
  path: `${path}/{id}`,
  summary: "Delete a response",
  description: "Forgets a stored response, at once. What went on from it can no longer be gone on from.",
  success: {
    description: "It is deleted.",
    headers: [],
    content: { [json]: { schema: DeletedResponse, example: { id, object: "response", deleted: true } } },
  },
});

const itemId = `msg_${hex}1000000`;

export const listInputItems = ofKept({
  operationId: "listInputItems",
  method: "get",
  path: `${path}/{id}/input_items`,
  summary: "List what a response was asked",
  description:
    "The items of the request that a stored response answers. What was said before stands with the response that it went on from.",
  parameters: [
    {
      name: "limit",
      in: "query",
      required: false,
      description: "How many items to answer at most.",
      schema: Type.Integer({ minimum: 1, maximum: 100, default: 20 }),
    },
    {
      name: "order",
      in: "query",
      required: false,
      description: "`desc`: the last item comes first.",
      schema: Type.Enum(["asc", "desc"], { type: "string", default: "desc" }),
    },
    {
      name: "after",
      in: "query",
      required: false,
      description: "The id of an item: those that come after it, in the order asked for.",
      schema: Type.String({ minLength: 1 }),
      example: () => itemId,
    },
  ],
  success: {
    description: "The items.",
    headers: [],
    content: {
      [json]: {
        schema: InputItemList,
        example: {
          object: "list",
          data: [{ id: itemId, type: "message", role: "user", content: [{ type: "input_text", text: "Hello!" }] }],
          first_id: itemId,
          last_id: itemId,
          has_more: false,
        },
      },
    },
  },
});
