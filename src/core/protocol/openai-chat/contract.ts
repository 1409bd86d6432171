/**
 * The wire shapes of chat completions: for each a typebox value, and where it is needed the static type of the same name.
 * Validation, types and the OpenAPI document are made from them. Rules: docs/design/service.md, Chat fields.
 *
 * Objects of a request are open unless they say otherwise; whether a top-level field is known is decided in validate.ts.
 */

import type { TSchema } from "typebox";
import Type from "typebox";
import { openaiError } from "../envelope/contract.ts";
import { eachItem, excludes, published, requires, when } from "../rules.ts";
import {
  anyObject,
  count,
  flag,
  imageUrl,
  list,
  ModelId,
  nonEmpty,
  nullable,
  oneOf,
  optional,
  properties_max,
  tagged,
  text,
  unixSeconds,
  unsupported,
} from "../shapes/contract.ts";

// ---- request: content parts ------------------------------------------------------------------------------------------

const TextContentPart = tagged("text", { text }, { $id: "TextContentPart" });

const RefusalContentPart = tagged("refusal", { refusal: text }, { $id: "RefusalContentPart" });

const ImageContentPart = tagged(
  "image_url",
  { image_url: Type.Object({ url: imageUrl, detail: optional(oneOf(["auto", "low", "high", "original"])) }) },
  { $id: "ImageContentPart", description: "Needs a model with the capability `vision`." },
);

const AudioContentPart = tagged(
  "input_audio",
  {
    input_audio: Type.Object({
      data: Type.String({ minLength: 1, description: "Base64." }),
      format: oneOf(["wav", "mp3"]),
    }),
  },
  { $id: "AudioContentPart", description: "Needs a model with the capability `audio_input`." },
);

const FileContentPart = tagged(
  "file",
  {
    file: Type.Object({
      file_data: Type.String({ minLength: 1, description: "Base64, or a data: URL." }),
      filename: optional(text),
      file_id: unsupported("files by id (send 'file_data' instead)"),
    }),
  },
  { $id: "FileContentPart", description: "Needs a model with the capability `files`." },
);

export const UserContentPart = Type.Union([TextContentPart, ImageContentPart, AudioContentPart, FileContentPart], {
  $id: "UserContentPart",
  "x-unsupported": { video_url: "video input" },
});
export type UserContentPart = Type.Static<typeof UserContentPart>;

const textOnly = { image_url: "an image in this role", input_audio: "audio in this role", file: "a file in this role" };

const AssistantContentPart = Type.Union([TextContentPart, RefusalContentPart], {
  $id: "AssistantContentPart",
  "x-unsupported": textOnly,
});

const textParts = (options: { minItems?: number } = {}) =>
  Type.Union([text, list(TextContentPart, { ...options, "x-unsupported": textOnly })]);

// ---- request: messages -----------------------------------------------------------------------------------------------

/** Opaque values of engines, which clients send back. */
const opaque = {
  extra_content: Type.Optional(
    Type.Unsafe<unknown>({ description: "An opaque value of the engine. Send it back with the call, unchanged." }),
  ),
};
const opaqueDetails = {
  reasoning_details: Type.Optional(
    Type.Unsafe<unknown>({ description: "Opaque values of the engine. Send them back with the message, unchanged." }),
  ),
};

const ChatFunctionCall = Type.Object(
  {
    id: nonEmpty,
    type: Type.Literal("function"),
    function: Type.Object({
      name: nonEmpty,
      arguments: Type.String({ description: "JSON text, exactly as the model wrote it.", "x-must-be": "JSON text" }),
    }),
    ...opaque,
  },
  { $id: "ChatFunctionCall" },
);

const ChatCustomCall = Type.Object(
  {
    id: nonEmpty,
    type: Type.Literal("custom"),
    custom: Type.Object({
      name: nonEmpty,
      input: Type.String({ description: "Plain text, exactly as the model wrote it." }),
    }),
    ...opaque,
  },
  { $id: "ChatCustomCall" },
);

export const ChatToolCall = Type.Union([ChatFunctionCall, ChatCustomCall], { $id: "ChatToolCall" });
export type ChatToolCall = Type.Static<typeof ChatToolCall>;

const speaker = optional(text);

const instructions = <Role extends string>(role: Role, $id: string) =>
  Type.Object({ role: Type.Literal(role), content: textParts({ minItems: 1 }), name: speaker }, { $id });
const DeveloperMessage = instructions("developer", "DeveloperMessage");
const SystemMessage = instructions("system", "SystemMessage");

const UserMessage = Type.Object(
  { role: Type.Literal("user"), content: Type.Union([text, list(UserContentPart, { minItems: 1 })]), name: speaker },
  { $id: "UserMessage" },
);

/**
 * Engines answer with `tool_calls: []`, which clients send back, so an empty array means the same as an absent field.
 * Empty content also means the same as an absent field.
 */
export const AssistantMessage = Type.Object(
  {
    role: Type.Literal("assistant"),
    content: optional(Type.Union([text, list(AssistantContentPart)])),
    refusal: optional(text),
    tool_calls: optional(list(ChatToolCall)),
    reasoning_content: optional(text),
    reasoning: optional(text),
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

const ToolMessage = Type.Object(
  { role: Type.Literal("tool"), tool_call_id: nonEmpty, content: textParts() },
  { $id: "ToolMessage", description: "The result of a tool call in an earlier assistant message." },
);

export const ChatMessage = Type.Union([DeveloperMessage, SystemMessage, UserMessage, AssistantMessage, ToolMessage], {
  $id: "ChatMessage",
  "x-unsupported": { function: "the role 'function' (use 'tool')" },
});
export type ChatMessage = Type.Static<typeof ChatMessage>;

// ---- request: tools and formats --------------------------------------------------------------------------------------

const identifier = () =>
  Type.String({ pattern: "^[a-zA-Z0-9_-]{1,64}$", "x-must-be": "1 to 64 letters, digits, underscores or hyphens" });

export const FunctionTool = tagged(
  "function",
  {
    function: Type.Object({
      name: identifier(),
      description: optional(text),
      parameters: optional(
        anyObject({ description: "A JSON Schema of an object." }, { type: Type.Optional(Type.Literal("object")) }),
      ),
      strict: optional(flag),
    }),
  },
  { $id: "FunctionTool" },
);

export const CustomTool = tagged(
  "custom",
  {
    custom: Type.Object({
      name: identifier(),
      description: optional(text),
      format: optional(
        Type.Union([
          tagged("text", {}),
          tagged("grammar", { grammar: Type.Object({ syntax: text, definition: text }) }),
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

const toolNamed = () => Type.Object({ name: nonEmpty });

const NamedFunction = tagged("function", { function: toolNamed() }, { $id: "NamedFunction" });
const NamedCustom = tagged("custom", { custom: toolNamed() }, { $id: "NamedCustom" });
export type NamedTool = Type.Static<typeof NamedFunction> | Type.Static<typeof NamedCustom>;

export const AllowedTools = tagged(
  "allowed_tools",
  {
    allowed_tools: Type.Object({
      mode: oneOf(["auto", "required"]),
      tools: Type.Array(Type.Union([NamedFunction, NamedCustom]), { minItems: 1, maxItems: 128 }),
    }),
  },
  { $id: "AllowedTools" },
);

export const ToolChoice = Type.Union([oneOf(["none", "auto", "required"]), NamedFunction, NamedCustom, AllowedTools], {
  $id: "ToolChoice",
});
export type ToolChoice = Type.Static<typeof ToolChoice>;

const closed = { additionalProperties: false };

export const ResponseFormat = Type.Union(
  [
    tagged("text", {}, closed),
    tagged("json_object", {}, closed),
    tagged(
      "json_schema",
      {
        json_schema: Type.Object(
          {
            name: identifier(),
            description: optional(text),
            schema: optional(anyObject({ description: "A JSON Schema." })),
            strict: optional(flag),
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

/** The fields of an assistant message that count as its content. An empty array does not count. */
export const assistantWords = ["content", "refusal", "tool_calls", "reasoning_content", "reasoning"] as const;
const silent = Object.fromEntries(assistantWords.map((field) => [field, { type: ["array", "null"], maxItems: 0 }]));

/** The rules between fields that a schema can state. */
export const chatRelations = [
  eachItem("messages", when({ properties: { role: { const: "assistant" } } }, { not: { properties: silent } })),
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
          include_obfuscation: ignored(flag),
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
    // Outside this range a JSON number is not exact, and a rounded seed is another seed.
    seed: optional(
      Type.Integer({
        minimum: Number.MIN_SAFE_INTEGER,
        maximum: Number.MAX_SAFE_INTEGER,
        description: "With the same seed, engines that support it repeat their answer.",
      }),
    ),
    stop: optional(
      Type.Union([nonEmpty, Type.Array(nonEmpty, { minItems: 1, maxItems: 4 })], {
        description: "Generation stops before one of these texts.",
      }),
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
    user: ignored(text),
    metadata: ignored(anyObject()),
    store: optional(
      Type.Literal(false, {
        type: "boolean",
        description: "Completions are not stored.",
        "x-unsupported": { "*": "stored completions" },
      }),
    ),
    safety_identifier: ignored(text),
    prompt_cache_retention: ignored(text),
    prompt_cache_options: ignored(anyObject()),
    service_tier: ignored(text),
    prediction: ignored(anyObject()),
    verbosity: ignored(text),
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
  token: text,
  logprob: Type.Number(),
  bytes: nullable(Type.Array(Type.Integer({ minimum: 0, maximum: 255 }))),
};
const ChatTokenLogprob = Type.Object(
  { ...logprobKeys, top_logprobs: Type.Array(Type.Object(logprobKeys)) },
  { $id: "ChatTokenLogprob" },
);

const ChatLogprobs = Type.Object(
  { content: nullable(Type.Array(ChatTokenLogprob)), refusal: nullable(Type.Array(ChatTokenLogprob)) },
  { $id: "ChatLogprobs" },
);

const FinishReason = oneOf(["stop", "length", "tool_calls", "content_filter"], { $id: "FinishReason" });

const ChatCompletionMessage = Type.Object(
  {
    role: Type.Literal("assistant"),
    content: nullable(text),
    refusal: nullable(text),
    reasoning_content: Type.Optional(text),
    ...opaqueDetails,
    tool_calls: Type.Optional(Type.Array(ChatToolCall, { minItems: 1 })),
  },
  { $id: "ChatCompletionMessage" },
);

/** A field of vLLM for the stop text that ended the answer. OpenAI's protocol has no field for it. */
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
    created: unixSeconds,
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
    id: Type.Optional(nonEmpty),
    type: Type.Optional(oneOf(["function", "custom"])),
    function: Type.Optional(Type.Object({ name: Type.Optional(text), arguments: Type.Optional(text) })),
    custom: Type.Optional(Type.Object({ name: Type.Optional(text), input: Type.Optional(text) })),
    ...opaque,
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
    content: Type.Optional(nullable(text)),
    refusal: Type.Optional(nullable(text)),
    reasoning_content: Type.Optional(text),
    ...opaqueDetails,
    tool_calls: Type.Optional(Type.Array(ChatToolCallDelta, { minItems: 1 })),
  },
  { $id: "ChatDelta" },
);
export type ChatDelta = Type.Static<typeof ChatDelta>;

const ChatChunkChoice = Type.Object(
  {
    index: Type.Literal(0, { type: "integer" }),
    delta: ChatDelta,
    logprobs: Type.Optional(nullable(ChatLogprobs)),
    finish_reason: nullable(FinishReason),
    stop_reason: stopReason,
  },
  { $id: "ChatChunkChoice" },
);

export const ChatCompletionChunk = Type.Object(
  {
    id: completionId(),
    object: Type.Literal("chat.completion.chunk"),
    created: unixSeconds,
    model: ModelId,
    choices: Type.Array(ChatChunkChoice, {
      maxItems: 1,
      description: "Empty in the usage chunk, which is the last one and is sent only on request.",
    }),
    usage: Type.Optional(nullable(ChatUsage)),
  },
  { $id: "ChatCompletionChunk", description: "`id`, `created` and `model` are the same in every chunk of a stream." },
);

// ---- errors ----------------------------------------------------------------------------------------------------------

/** The error body of the endpoints for chat, models and usage. Five keys are always present. */
export const ChatError = openaiError("Error", { param: "messages[3].role" });
export type ChatError = Type.Static<typeof ChatError>;
