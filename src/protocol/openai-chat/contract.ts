/**
 * Every wire shape of chat completions, once: a typebox value and the static type of the same name. Validation, types and
 * the OpenAPI document are made from these. Rules: docs/design/service.md, Chat fields.
 *
 * Objects of a request are open unless they say otherwise; whether a top-level field is known is decided in validate.ts.
 */

import type { TObject, TProperties, TSchema } from "typebox";
import Type from "typebox";
import { openaiError } from "../envelope/contract.ts";
import { eachItem, excludes, published, requires } from "../rules.ts";
import {
  anyObject,
  count,
  list,
  ModelId,
  nullable,
  oneOf,
  optional,
  properties_max,
  unsupported,
} from "../shapes/contract.ts";

// ---- request: content parts ------------------------------------------------------------------------------------------

export const TextContentPart = Type.Object(
  { type: Type.Literal("text"), text: Type.String() },
  { $id: "TextContentPart" },
);
export type TextContentPart = Type.Static<typeof TextContentPart>;

export const RefusalContentPart = Type.Object(
  { type: Type.Literal("refusal"), refusal: Type.String() },
  { $id: "RefusalContentPart" },
);
export type RefusalContentPart = Type.Static<typeof RefusalContentPart>;

export const ImageContentPart = Type.Object(
  {
    type: Type.Literal("image_url"),
    image_url: Type.Object({
      url: Type.String({
        pattern: "^([Hh][Tt][Tt][Pp][Ss]://|[Dd][Aa][Tt][Aa]:)",
        "x-must-be": "an https: or data: URL",
      }),
      detail: optional(oneOf(["auto", "low", "high", "original"])),
    }),
  },
  { $id: "ImageContentPart", description: "Needs a model with the capability `vision`." },
);
export type ImageContentPart = Type.Static<typeof ImageContentPart>;

export const AudioContentPart = Type.Object(
  {
    type: Type.Literal("input_audio"),
    input_audio: Type.Object({
      data: Type.String({ minLength: 1, description: "Base64." }),
      format: oneOf(["wav", "mp3"]),
    }),
  },
  { $id: "AudioContentPart", description: "Needs a model with the capability `audio_input`." },
);
export type AudioContentPart = Type.Static<typeof AudioContentPart>;

export const FileContentPart = Type.Object(
  {
    type: Type.Literal("file"),
    file: Type.Object({
      file_data: Type.String({ minLength: 1, description: "Base64, or a data: URL." }),
      filename: optional(Type.String()),
      file_id: unsupported("files by id (send 'file_data' instead)"),
    }),
  },
  { $id: "FileContentPart", description: "Needs a model with the capability `files`." },
);
export type FileContentPart = Type.Static<typeof FileContentPart>;

export const UserContentPart = Type.Union([TextContentPart, ImageContentPart, AudioContentPart, FileContentPart], {
  $id: "UserContentPart",
  "x-unsupported": { video_url: "video input" },
});
export type UserContentPart = Type.Static<typeof UserContentPart>;

const textOnly = { image_url: "an image in this role", input_audio: "audio in this role", file: "a file in this role" };

export const AssistantContentPart = Type.Union([TextContentPart, RefusalContentPart], {
  $id: "AssistantContentPart",
  "x-unsupported": textOnly,
});
export type AssistantContentPart = Type.Static<typeof AssistantContentPart>;

const textParts = (options: { minItems?: number } = {}) =>
  Type.Union([Type.String(), list(TextContentPart, { ...options, "x-unsupported": textOnly })]);

// ---- request: messages -----------------------------------------------------------------------------------------------

export const ChatFunctionCall = Type.Object(
  {
    id: Type.String({ minLength: 1 }),
    type: Type.Literal("function"),
    function: Type.Object({
      name: Type.String({ minLength: 1 }),
      arguments: Type.String({ description: "JSON text, exactly as the model wrote it.", "x-must-be": "JSON text" }),
    }),
  },
  { $id: "ChatFunctionCall" },
);

export const ChatCustomCall = Type.Object(
  {
    id: Type.String({ minLength: 1 }),
    type: Type.Literal("custom"),
    custom: Type.Object({
      name: Type.String({ minLength: 1 }),
      input: Type.String({ description: "Plain text, exactly as the model wrote it." }),
    }),
  },
  { $id: "ChatCustomCall" },
);

export const ChatToolCall = Type.Union([ChatFunctionCall, ChatCustomCall], { $id: "ChatToolCall" });
export type ChatToolCall = Type.Static<typeof ChatToolCall>;

const speaker = optional(Type.String());

export const DeveloperMessage = Type.Object(
  { role: Type.Literal("developer"), content: textParts({ minItems: 1 }), name: speaker },
  { $id: "DeveloperMessage" },
);
export type DeveloperMessage = Type.Static<typeof DeveloperMessage>;

export const SystemMessage = Type.Object(
  { role: Type.Literal("system"), content: textParts({ minItems: 1 }), name: speaker },
  { $id: "SystemMessage" },
);
export type SystemMessage = Type.Static<typeof SystemMessage>;

export const UserMessage = Type.Object(
  {
    role: Type.Literal("user"),
    content: Type.Union([Type.String(), list(UserContentPart, { minItems: 1 })]),
    name: speaker,
  },
  { $id: "UserMessage" },
);
export type UserMessage = Type.Static<typeof UserMessage>;

/** Engines answer with `tool_calls: []` and clients replay it, so an empty array equals absent; so does empty content. */
export const AssistantMessage = Type.Object(
  {
    role: Type.Literal("assistant"),
    content: optional(Type.Union([Type.String(), list(AssistantContentPart)])),
    refusal: optional(Type.String()),
    tool_calls: optional(list(ChatToolCall)),
    reasoning_content: optional(Type.String()),
    reasoning: optional(Type.String()),
    name: speaker,
    audio: unsupported("audio output"),
    function_call: unsupported("function_call (use tool_calls)"),
  },
  {
    $id: "AssistantMessage",
    description: "One of content, refusal, tool_calls, reasoning_content and reasoning is present.",
  },
);
export type AssistantMessage = Type.Static<typeof AssistantMessage>;

export const ToolMessage = Type.Object(
  { role: Type.Literal("tool"), tool_call_id: Type.String({ minLength: 1 }), content: textParts() },
  { $id: "ToolMessage", description: "The result of a tool call in an earlier assistant message." },
);
export type ToolMessage = Type.Static<typeof ToolMessage>;

export const ChatMessage = Type.Union([DeveloperMessage, SystemMessage, UserMessage, AssistantMessage, ToolMessage], {
  $id: "ChatMessage",
  "x-unsupported": { function: "the role 'function' (use 'tool')" },
});
export type ChatMessage = Type.Static<typeof ChatMessage>;

// ---- request: tools and formats --------------------------------------------------------------------------------------

const identifier = () =>
  Type.String({
    pattern: "^[a-zA-Z0-9_-]{1,64}$",
    "x-must-be": "1 to 64 letters, digits, underscores or hyphens",
  });

export const FunctionTool = Type.Object(
  {
    type: Type.Literal("function"),
    function: Type.Object({
      name: identifier(),
      description: optional(Type.String()),
      parameters: optional(
        anyObject({ description: "A JSON Schema of an object." }, { type: Type.Optional(Type.Literal("object")) }),
      ),
      strict: optional(Type.Boolean()),
    }),
  },
  { $id: "FunctionTool" },
);

export const CustomTool = Type.Object(
  {
    type: Type.Literal("custom"),
    custom: Type.Object({
      name: identifier(),
      description: optional(Type.String()),
      format: optional(
        Type.Union([
          Type.Object({ type: Type.Literal("text") }),
          Type.Object({
            type: Type.Literal("grammar"),
            grammar: Type.Object({ syntax: Type.String(), definition: Type.String() }),
          }),
        ]),
      ),
    }),
  },
  {
    $id: "CustomTool",
    description:
      "Takes plain text. Engines get a function with a string `input`, and a description of the grammar; the answer has a `custom` call.",
  },
);
export type CustomTool = Type.Static<typeof CustomTool>;

export const ToolDefinition = Type.Union([FunctionTool, CustomTool], { $id: "ToolDefinition" });
export type ToolDefinition = Type.Static<typeof ToolDefinition>;

const toolNamed = () => Type.Object({ name: Type.String({ minLength: 1 }) });

export const NamedFunction = Type.Object(
  { type: Type.Literal("function"), function: toolNamed() },
  { $id: "NamedFunction" },
);
export const NamedCustom = Type.Object({ type: Type.Literal("custom"), custom: toolNamed() }, { $id: "NamedCustom" });
export type NamedTool = Type.Static<typeof NamedFunction> | Type.Static<typeof NamedCustom>;

export const AllowedTools = Type.Object(
  {
    type: Type.Literal("allowed_tools"),
    allowed_tools: Type.Object({
      mode: oneOf(["auto", "required"]),
      tools: Type.Array(Type.Union([NamedFunction, NamedCustom]), { minItems: 1, maxItems: 128 }),
    }),
  },
  { $id: "AllowedTools" },
);
export type AllowedTools = Type.Static<typeof AllowedTools>;

export const ToolChoice = Type.Union([oneOf(["none", "auto", "required"]), NamedFunction, NamedCustom, AllowedTools], {
  $id: "ToolChoice",
});
export type ToolChoice = Type.Static<typeof ToolChoice>;

const closed = { additionalProperties: false };

export const ResponseFormat = Type.Union(
  [
    Type.Object({ type: Type.Literal("text") }, closed),
    Type.Object({ type: Type.Literal("json_object") }, closed),
    Type.Object(
      {
        type: Type.Literal("json_schema"),
        json_schema: Type.Object(
          {
            name: identifier(),
            description: optional(Type.String()),
            schema: optional(anyObject({ description: "A JSON Schema." })),
            strict: optional(Type.Boolean()),
          },
          closed,
        ),
      },
      closed,
    ),
  ],
  { $id: "ResponseFormat" },
);
export type ResponseFormat = Type.Static<typeof ResponseFormat>;

// ---- request ---------------------------------------------------------------------------------------------------------

const tokens_max = (description: string) => optional(Type.Integer({ minimum: 1, description }));
const ignored = (schema: TSchema) =>
  optional(Type.Unsafe<unknown>({ ...schema, description: "Accepted without effect." }));

/** What an assistant message can say; an empty array says nothing. */
export const assistantWords = ["content", "refusal", "tool_calls", "reasoning_content", "reasoning"] as const;
const silent = Object.fromEntries(assistantWords.map((field) => [field, { type: ["array", "null"], maxItems: 0 }]));

/** The rules between fields that a schema can state. */
export const chatRelations = [
  eachItem("messages", {
    if: { properties: { role: { const: "assistant" } } },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    then: { not: { properties: silent } },
  }),
  excludes("max_tokens", "max_completion_tokens"),
  requires("stream_options", "stream", true),
  requires("top_logprobs", "logprobs", true),
  requires("tool_choice", "tools"),
  requires("parallel_tool_calls", "tools"),
];

export const ChatCompletionRequest = Type.Object(
  {
    model: ModelId,
    messages: Type.Array(ChatMessage, { minItems: 1, maxItems: 2000 }),
    stream: optional(
      Type.Boolean({ default: false, description: "Answer with server-sent events that end with `data: [DONE]`." }),
    ),
    stream_options: optional(
      Type.Object(
        {
          include_usage: optional(Type.Boolean({ description: "Send a last chunk with the usage." })),
          include_obfuscation: ignored(Type.Boolean()),
        },
        { ...closed, description: "Requires `stream: true`." },
      ),
    ),
    max_tokens: tokens_max("The older name of `max_completion_tokens`. Cannot be combined with it."),
    max_completion_tokens: tokens_max(
      "The most tokens to generate, including reasoning. Cannot be combined with `max_tokens`.",
    ),
    n: optional(
      Type.Literal(1, {
        type: "integer",
        description: "How many choices to generate; only 1 is supported.",
        "x-unsupported": { "*": "a number of choices other than 1" },
      }),
    ),
    temperature: optional(
      Type.Number({ minimum: 0, maximum: 2, description: "Higher values make the output more random." }),
    ),
    top_p: optional(
      Type.Number({
        minimum: 0,
        maximum: 1,
        description: "Sample only from the most likely tokens with this total probability.",
      }),
    ),
    frequency_penalty: optional(
      Type.Number({ minimum: -2, maximum: 2, description: "Positive values discourage frequent tokens." }),
    ),
    presence_penalty: optional(
      Type.Number({
        minimum: -2,
        maximum: 2,
        description: "Positive values discourage tokens that have already appeared.",
      }),
    ),
    // Beyond this range a number of JSON is no longer exact, and a rounded seed is another seed.
    seed: optional(
      Type.Integer({
        minimum: Number.MIN_SAFE_INTEGER,
        maximum: Number.MAX_SAFE_INTEGER,
        description: "With the same seed, engines that support it repeat their answer.",
      }),
    ),
    stop: optional(
      Type.Union(
        [Type.String({ minLength: 1 }), Type.Array(Type.String({ minLength: 1 }), { minItems: 1, maxItems: 4 })],
        { description: "Generation stops before one of these texts." },
      ),
    ),
    logit_bias: optional(
      Type.Unsafe<Record<string, number>>({
        type: "object",
        additionalProperties: Type.Number({ minimum: -100, maximum: 100 }),
        propertyNames: { pattern: "^[0-9]{1,10}$", "x-must-be": "a token id: digits only" },
        maxProperties: properties_max,
        description: "Token id to bias.",
      }),
    ),
    logprobs: optional(Type.Boolean({ description: "Needs a model with the capability `logprobs`." })),
    top_logprobs: optional(Type.Integer({ minimum: 0, maximum: 20, description: "Requires `logprobs: true`." })),
    tools: optional(
      Type.Array(ToolDefinition, {
        minItems: 1,
        maxItems: 128,
        description: "The tools that the model may call. Needs a model with the capability `tools`.",
      }),
    ),
    tool_choice: optional(ToolChoice),
    parallel_tool_calls: optional(Type.Boolean({ description: "Requires `tools`." })),
    response_format: optional(ResponseFormat),
    reasoning_effort: optional(
      oneOf(["none", "minimal", "low", "medium", "high", "xhigh"], {
        description: "Needs a model with the capability `reasoning`.",
      }),
    ),
    prompt_cache_key: optional(
      Type.String({
        description:
          "Requests with the same key are routed so that they can share a prompt cache. It does not change answers.",
      }),
    ),
    user: ignored(Type.String()),
    metadata: ignored(anyObject()),
    store: optional(
      Type.Literal(false, {
        type: "boolean",
        description: "Completions are not stored.",
        "x-unsupported": { "*": "stored completions" },
      }),
    ),
    safety_identifier: ignored(Type.String()),
    prompt_cache_retention: ignored(Type.String()),
    prompt_cache_options: ignored(anyObject()),
    service_tier: ignored(Type.String()),
    prediction: ignored(anyObject()),
    verbosity: ignored(Type.String()),
    modalities: optional(list(oneOf(["text"], { "x-unsupported": { "*": "output other than text" } }))),
    audio: unsupported("audio output"),
    web_search_options: unsupported("web search"),
    functions: unsupported("functions (use tools)"),
    function_call: unsupported("function_call (use tool_choice)"),
    moderation: unsupported("moderation"),
  },
  {
    $id: "ChatCompletionRequest",
    ...published(chatRelations),
    description:
      "A null is the same as leaving the field out. Send `max_tokens` or `max_completion_tokens`, not both. Unknown fields are refused with `unknown_field`.",
  },
);
export type ChatCompletionRequest = Type.Static<typeof ChatCompletionRequest>;

// ---- response --------------------------------------------------------------------------------------------------------

const unixSeconds = () => Type.Integer({ minimum: 0, description: "Unix timestamp, seconds." });

export const ChatUsage = Type.Object(
  {
    prompt_tokens: Type.Integer({ minimum: 0, description: "Includes cached tokens." }),
    completion_tokens: Type.Integer({ minimum: 0, description: "Reasoning included." }),
    total_tokens: count(),
    prompt_tokens_details: Type.Optional(
      Type.Object({ cached_tokens: count(), cache_write_tokens: Type.Optional(count()) }),
    ),
    completion_tokens_details: Type.Optional(Type.Object({ reasoning_tokens: count() })),
  },
  { $id: "ChatUsage" },
);
export type ChatUsage = Type.Static<typeof ChatUsage>;

const logprobKeys = {
  token: Type.String(),
  logprob: Type.Number(),
  bytes: nullable(Type.Array(Type.Integer({ minimum: 0, maximum: 255 }))),
};
type LogprobKeys = typeof logprobKeys;

const tokenLogprob = <Extra extends TProperties>(
  extra: Extra,
  options: { $id?: string } = {},
): TObject<LogprobKeys & Extra> => Type.Object({ ...logprobKeys, ...extra }, options);
export const ChatTokenLogprob = tokenLogprob(
  { top_logprobs: Type.Array(tokenLogprob({})) },
  { $id: "ChatTokenLogprob" },
);
export type ChatTokenLogprob = Type.Static<typeof ChatTokenLogprob>;

export const ChatLogprobs = Type.Object(
  { content: nullable(Type.Array(ChatTokenLogprob)), refusal: nullable(Type.Array(ChatTokenLogprob)) },
  { $id: "ChatLogprobs" },
);
export type ChatLogprobs = Type.Static<typeof ChatLogprobs>;

export const FinishReason = oneOf(["stop", "length", "tool_calls", "content_filter"], { $id: "FinishReason" });
export type FinishReason = Type.Static<typeof FinishReason>;

export const ChatCompletionMessage = Type.Object(
  {
    role: Type.Literal("assistant"),
    content: nullable(Type.String()),
    refusal: nullable(Type.String()),
    reasoning_content: Type.Optional(Type.String()),
    tool_calls: Type.Optional(Type.Array(ChatToolCall, { minItems: 1 })),
  },
  { $id: "ChatCompletionMessage" },
);
export type ChatCompletionMessage = Type.Static<typeof ChatCompletionMessage>;

/** As vLLM answers it; OpenAI's protocol has no word for it. */
const stopReason = Type.Optional(Type.String({ description: "Which of `stop` ended the answer. Absent if none did." }));

export const ChatChoice = Type.Object(
  {
    index: Type.Literal(0, { type: "integer" }),
    message: ChatCompletionMessage,
    logprobs: nullable(ChatLogprobs),
    finish_reason: FinishReason,
    stop_reason: stopReason,
  },
  { $id: "ChatChoice" },
);
export type ChatChoice = Type.Static<typeof ChatChoice>;

const completionId = () => Type.String({ pattern: "^chatcmpl-[0-9a-f]{32}$" });

export const ChatCompletion = Type.Object(
  {
    id: completionId(),
    object: Type.Literal("chat.completion"),
    created: unixSeconds(),
    model: ModelId,
    choices: Type.Array(ChatChoice, { minItems: 1, maxItems: 1 }),
    usage: ChatUsage,
  },
  { $id: "ChatCompletion" },
);
export type ChatCompletion = Type.Static<typeof ChatCompletion>;

export const ChatToolCallDelta = Type.Object(
  {
    index: count(),
    id: Type.Optional(Type.String({ minLength: 1 })),
    type: Type.Optional(oneOf(["function", "custom"])),
    function: Type.Optional(
      Type.Object({ name: Type.Optional(Type.String()), arguments: Type.Optional(Type.String()) }),
    ),
    custom: Type.Optional(Type.Object({ name: Type.Optional(Type.String()), input: Type.Optional(Type.String()) })),
  },
  {
    $id: "ChatToolCallDelta",
    description: "The first fragment of a call has `id`, `type`, and `function.name` or `custom.name`.",
  },
);
export type ChatToolCallDelta = Type.Static<typeof ChatToolCallDelta>;

export const ChatDelta = Type.Object(
  {
    role: Type.Optional(Type.Literal("assistant")),
    content: Type.Optional(nullable(Type.String())),
    refusal: Type.Optional(nullable(Type.String())),
    reasoning_content: Type.Optional(Type.String()),
    tool_calls: Type.Optional(Type.Array(ChatToolCallDelta, { minItems: 1 })),
  },
  { $id: "ChatDelta" },
);
export type ChatDelta = Type.Static<typeof ChatDelta>;

export const ChatChunkChoice = Type.Object(
  {
    index: Type.Literal(0, { type: "integer" }),
    delta: ChatDelta,
    logprobs: Type.Optional(nullable(ChatLogprobs)),
    finish_reason: nullable(FinishReason),
    stop_reason: stopReason,
  },
  { $id: "ChatChunkChoice" },
);
export type ChatChunkChoice = Type.Static<typeof ChatChunkChoice>;

export const ChatCompletionChunk = Type.Object(
  {
    id: completionId(),
    object: Type.Literal("chat.completion.chunk"),
    created: unixSeconds(),
    model: ModelId,
    choices: Type.Array(ChatChunkChoice, {
      maxItems: 1,
      description: "Empty in the usage chunk, which is the last one and is sent only on request.",
    }),
    usage: Type.Optional(nullable(ChatUsage)),
  },
  { $id: "ChatCompletionChunk", description: "`id`, `created` and `model` are the same in every chunk of a stream." },
);
export type ChatCompletionChunk = Type.Static<typeof ChatCompletionChunk>;

// ---- errors ----------------------------------------------------------------------------------------------------------

/** The error body of chat, models and usage: five keys, always present. */
export const ChatError = openaiError("Error", { param: "messages[3].role" });
export type ChatError = Type.Static<typeof ChatError>;
