/**
 * The wire shapes of Responses: for each a typebox value, and where it is needed the static type of the same name. Validation,
 * types and the OpenAPI document are made from them. Rules: docs/design/service.md, Adapters; docs/design/protocols.md,
 * Responses requests.
 *
 * Objects are open: they may have further keys of any type. Keys that have an effect have a type here, and ignored keys
 * have none. A key that would change the answer and is not supported gets `unsupported_feature`.
 */
import type { TObjectOptions, TProperties, TSchema } from "typebox";
import Type from "typebox";
import { reasoningEfforts } from "../../inference/request.ts";
import { openaiError } from "../envelope/contract.ts";
import { eachItem, present, published, when } from "../rules.ts";
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
  openObject,
  optional,
  properties_max,
  refusedKinds,
  tagged,
  text,
  turns_max,
  unixSeconds,
  unsupported,
} from "../shapes/contract.ts";

/** The schema options of objects that an answer repeats with all the keys that they had in the request. */
const open = { additionalProperties: true };

// ---- request: content parts ------------------------------------------------------------------------------------------

const InputTextPart = tagged("input_text", { text }, { $id: "ResponsesInputText" });
const outputTextParam = tagged("output_text", { text });
const refusalParam = tagged("refusal", { refusal: text });

const InputImagePart = tagged(
  "input_image",
  { image_url: imageUrl, detail: optional(text), file_id: unsupported("files by id (send 'image_url' instead)") },
  { $id: "ResponsesInputImage", description: "Needs a model with the capability `vision`." },
);

const InputFilePart = tagged(
  "input_file",
  {
    file_data: Type.String({ minLength: 1, description: "Base64, or a data: URL." }),
    filename: optional(text),
    file_id: unsupported("files by id (send 'file_data' instead)"),
    file_url: unsupported("files by URL (send 'file_data' instead)"),
  },
  { $id: "ResponsesInputFile", description: "Needs a model with the capability `files`." },
);

const refusedParts = { input_audio: "audio input", input_video: "video input", computer_screenshot: "computer use" };

export const InputPart = Type.Union([InputTextPart, outputTextParam, refusalParam, InputImagePart, InputFilePart], {
  $id: "ResponsesInputPart",
  "x-unsupported": refusedParts,
});
export type InputPart = Type.Static<typeof InputPart>;

export const OutputPart = Type.Union([InputTextPart, outputTextParam, InputImagePart, InputFilePart], {
  $id: "ResponsesResultPart",
  "x-unsupported": refusedParts,
});
export type OutputPart = Type.Static<typeof OutputPart>;

// ---- request: tools --------------------------------------------------------------------------------------------------

const toolName = () => Type.String({ minLength: 1, maxLength: 128 });

export const FunctionTool = tagged(
  "function",
  {
    name: toolName(),
    description: optional(text),
    parameters: optional(anyObject({ description: "A JSON Schema of an object." })),
    strict: optional(flag),
  },
  { $id: "ResponsesFunctionTool" },
);
export type FunctionTool = Type.Static<typeof FunctionTool>;

export const CustomTool = tagged(
  "custom",
  {
    name: toolName(),
    description: optional(text),
    format: optional(Type.Union([tagged("text", {}), tagged("grammar", { syntax: text, definition: text })])),
  },
  {
    $id: "ResponsesCustomTool",
    description:
      "Takes plain text. Engines that know only functions get one with a string `input`, and a description of the grammar.",
  },
);
export type CustomTool = Type.Static<typeof CustomTool>;

export const NamespaceTool = tagged(
  "namespace",
  { name: toolName(), description: optional(text), tools: list(Type.Union([FunctionTool, CustomTool])) },
  { $id: "ResponsesNamespaceTool" },
);
export type NamespaceTool = Type.Static<typeof NamespaceTool>;

/** The tools that OpenAI's service runs, with the names that a refusal uses for them. */
export const hostedTools = {
  web_search: "web search",
  web_search_2025_08_26: "web search",
  web_search_preview: "web search",
  web_search_preview_2025_03_11: "web search",
  file_search: "file search",
  code_interpreter: "the code interpreter",
  image_generation: "image generation",
  mcp: "MCP servers",
  tool_search: "tool search",
} as const;
export type HostedKind = keyof typeof hostedTools;

/** Tools without a schema, which only OpenAI's models can call. */
const schemalessTools = {
  local_shell: "the local shell tool",
  shell: "the shell tool",
  apply_patch: "the apply_patch tool (a custom tool of that name is supported)",
  computer_use_preview: "computer use",
  computer: "computer use",
  programmatic_tool_calling: "programmatic tool calling",
};

const HostedTool = Type.Union(
  (Object.keys(hostedTools) as HostedKind[]).map((kind) => tagged(kind, {})),
  { $id: "ResponsesHostedTool", description: "Left out if it is only listed. Refused if no other tool is listed." },
);
type HostedTool = { type: HostedKind };

export const ResponsesTool = Type.Unsafe<FunctionTool | CustomTool | NamespaceTool | HostedTool>(
  Type.Union([FunctionTool, CustomTool, NamespaceTool, HostedTool], {
    $id: "ResponsesTool",
    "x-unsupported": schemalessTools,
  }),
);
export type ResponsesTool = FunctionTool | CustomTool | NamespaceTool | HostedTool;

const unsupportedTools = { ...hostedTools, ...schemalessTools, computer_use: "computer use" };

const named = <Kind extends string>(kind: Kind) =>
  Type.Object({ type: Type.Literal(kind), name: toolName(), namespace: optional(text) }, open);
const namedFunction = named("function");
const namedCustom = named("custom");
export type NamedTool = Type.Static<typeof namedFunction> | Type.Static<typeof namedCustom>;

const ResponsesToolChoice = Type.Union(
  [
    oneOf(["none", "auto", "required"]),
    namedFunction,
    namedCustom,
    tagged(
      "allowed_tools",
      {
        mode: oneOf(["auto", "required"]),
        tools: list(Type.Union([namedFunction, namedCustom], { "x-unsupported": unsupportedTools }), {
          minItems: 1,
          maxItems: 512,
        }),
      },
      open,
    ),
  ],
  { $id: "ResponsesToolChoice", "x-unsupported": unsupportedTools },
);

// ---- request: settings -----------------------------------------------------------------------------------------------

export const TextFormat = Type.Union(
  [
    tagged("text", {}, open),
    tagged("json_object", {}, open),
    tagged(
      "json_schema",
      {
        name: Type.String({ pattern: "^[a-zA-Z0-9_-]{1,64}$", "x-must-be": "1 to 64 letters, digits, _ or -" }),
        schema: anyObject({ description: "A JSON Schema." }),
        description: optional(text),
        strict: optional(flag),
      },
      open,
    ),
  ],
  { $id: "ResponsesTextFormat" },
);
export type TextFormat = Type.Static<typeof TextFormat>;

// ---- request: items --------------------------------------------------------------------------------------------------

const message = <Kind extends TSchema>(type: Kind, $id: string) =>
  Type.Object(
    { type, role: oneOf(["user", "assistant", "system", "developer"]), content: Type.Union([text, list(InputPart)]) },
    { $id },
  );
const typed = message(Type.Literal("message"), "ResponsesTypedMessage");
export type MessageItem = Type.Static<typeof typed>;
/** A message as callers may write it: without its `type`. */
export const MessageItem = message(Type.Optional(Type.Literal("message")), "ResponsesMessage");

const FunctionCallItem = tagged(
  "function_call",
  {
    call_id: nonEmpty,
    name: toolName(),
    arguments: Type.String({ description: "JSON text, exactly as the model wrote it.", "x-must-be": "JSON text" }),
    namespace: optional(text),
  },
  { $id: "ResponsesFunctionCall" },
);

const result = Type.Union([text, list(OutputPart)]);

const resultOf = <Kind extends string>(kind: Kind, $id: string) =>
  tagged(kind, { call_id: nonEmpty, output: result }, { $id });
const FunctionCallOutputItem = resultOf("function_call_output", "ResponsesFunctionCallOutput");

const CustomToolCallItem = tagged(
  "custom_tool_call",
  { call_id: nonEmpty, name: toolName(), input: text, namespace: optional(text) },
  { $id: "ResponsesCustomToolCall" },
);

const CustomToolCallOutputItem = resultOf("custom_tool_call_output", "ResponsesCustomToolCallOutput");

const spoken = (kind: string) => optional(list(Type.Object({ type: Type.Literal(kind), text })));

export const ReasoningItem = tagged(
  "reasoning",
  { summary: spoken("summary_text"), content: spoken("reasoning_text"), encrypted_content: optional(text) },
  {
    $id: "ResponsesReasoning",
    description: "As the service sent it. Content that another service encrypted is left out.",
  },
);
export type ReasoningItem = Type.Static<typeof ReasoningItem>;

const AdditionalToolsItem = tagged(
  "additional_tools",
  { tools: list(ResponsesTool) },
  { $id: "ResponsesAdditionalTools", description: "Tools in addition to `tools`." },
);

const ConfigurationUpdateItem = tagged(
  "configuration_update",
  {
    reasoning: optional(Type.Object({ effort: optional(oneOf([...reasoningEfforts])) })),
    text: optional(Type.Object({ format: optional(TextFormat) })),
  },
  {
    $id: "ResponsesConfigurationUpdate",
    description:
      "Replaces `reasoning.effort` and `text.format` of the request, from here on. The last update of each setting is in force.",
  },
);

export const ItemReference = tagged(
  "item_reference",
  { id: nonEmpty },
  { $id: "ResponsesItemReference", description: "An item of a stored response." },
);
export type ItemReference = Type.Static<typeof ItemReference>;

const CompactionItem = tagged(
  "compaction",
  {
    encrypted_content: Type.String({
      pattern: "^compaction\\.1:\\s{0,64}\\S",
      "x-must-be": "what this service sent (what another service compacted cannot be read here)",
    }),
  },
  {
    $id: "ResponsesCompaction",
    description: "As the service sent it. The model reads its text as a message in this place.",
  },
);

const CompactionTriggerItem = tagged(
  "compaction_trigger",
  {},
  {
    $id: "ResponsesCompactionTrigger",
    description:
      "Asks for a summary of the conversation, as one item `compaction`. Only as the last item. Tools, `tool_choice`, `text.format` and log probabilities have no effect on it.",
  },
);

export const otherItems = [
  FunctionCallItem,
  FunctionCallOutputItem,
  CustomToolCallItem,
  CustomToolCallOutputItem,
  ReasoningItem,
  AdditionalToolsItem,
  ConfigurationUpdateItem,
  ItemReference,
  CompactionItem,
  CompactionTriggerItem,
] as const;

const refusedItems = refusedKinds({
  "web search": ["web_search_call"],
  "file search": ["file_search_call"],
  "the code interpreter": ["code_interpreter_call"],
  "image generation": ["image_generation_call"],
  "computer use": ["computer_call", "computer_call_output"],
  "the local shell tool": ["local_shell_call", "local_shell_call_output"],
  "the shell tool": ["shell_call", "shell_call_output"],
  "the apply_patch tool": ["apply_patch_call", "apply_patch_call_output"],
  "MCP servers": ["mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "mcp_call"],
  "tool search": ["tool_search_call", "tool_search_output"],
  "programmatic tool calling": ["program", "program_output"],
  "several agents in one response": ["agent_message", "multi_agent_call", "multi_agent_call_output"],
});

const typedItem = Type.Union([typed, ...otherItems], { "x-unsupported": refusedItems });
export type InputItem = Type.Static<typeof typedItem>;
export const InputItem = Type.Union([MessageItem, ...otherItems], {
  $id: "ResponsesInputItem",
  "x-unsupported": refusedItems,
});

// ---- request ---------------------------------------------------------------------------------------------------------

const summaries = ["auto", "concise", "detailed"] as const;
export type SummaryWish = (typeof summaries)[number];

/** The parts that only a user's message may have. Instructions and answers are text. */
export const userParts: readonly string[] = ["input_image", "input_file"];
const textOfOthers = when(
  { properties: { type: { const: "message" }, role: { not: { const: "user" } } }, required: ["role"] },
  { properties: { content: { items: { properties: { type: { not: { enum: userParts } } } } } } },
);

const inputOf = <Item extends TSchema>(item: Item) =>
  Type.Union([text, Type.Array(item, { minItems: 1, maxItems: turns_max })]);

const requestFields = {
  model: ModelId,
  instructions: optional(
    Type.String({ description: "Comes before everything else. Not carried over to the next response." }),
  ),
  stream: optional(Type.Boolean({ default: false, description: "Answer with server-sent events." })),
  tools: optional(list(ResponsesTool)),
  tool_choice: optional(ResponsesToolChoice),
  parallel_tool_calls: optional(flag),
  previous_response_id: optional(Type.String({ minLength: 1, description: "A stored response to continue from." })),
  store: optional(
    Type.Boolean({
      default: true,
      description: "Whether to store the response, so that it can be fetched and continued.",
    }),
  ),
  max_output_tokens: optional(Type.Integer({ minimum: 1, description: "Reasoning included." })),
  temperature: optional(Type.Number({ minimum: 0, maximum: 2 })),
  top_p: optional(Type.Number({ minimum: 0, maximum: 1 })),
  top_logprobs: optional(Type.Integer({ minimum: 0, maximum: 20 })),
  text: optional(Type.Object({ format: optional(TextFormat) })),
  reasoning: optional(
    Type.Object(
      {
        effort: optional(oneOf([...reasoningEfforts])),
        summary: optional(
          oneOf([...summaries], {
            description: "The model's reasoning is sent as a summary, with any of these values.",
          }),
        ),
        generate_summary: optional(oneOf([...summaries], { description: "The old name of `summary`." })),
      },
      { description: "A hint: not sent to a model that does not reason." },
    ),
  ),
  include: optional(list(text)),
  prompt_cache_key: optional(
    Type.String({ description: "Requests with the same key are routed so that they can share a prompt cache." }),
  ),
  background: optional(
    Type.Boolean({
      description:
        "Answers at once with a response in progress, and works on. Fetch the response until it has ended, or cancel it. Needs `store`.",
    }),
  ),
  context_management: optional(
    Type.Array(Type.Unknown(), {
      maxItems: 0,
      "x-unsupported": {
        "*": "management of the context (compact it with /v1/responses/compact, or send the item 'compaction_trigger')",
      },
    }),
  ),
  multi_agent: optional(
    openObject(
      {},
      {
        enabled: optional(
          Type.Literal(false, { type: "boolean", "x-unsupported": { "*": "several agents in one response" } }),
        ),
      },
    ),
  ),
  conversation: unsupported("conversations (send the items, or 'previous_response_id')"),
  prompt: unsupported("stored prompts"),
  moderation: unsupported("moderation"),
} satisfies TProperties;

export const ResponsesRequest = Type.Object(
  { ...requestFields, input: inputOf(InputItem) },
  {
    $id: "ResponsesRequest",
    maxProperties: properties_max,
    ...published([eachItem("input", textOfOthers)]),
    additionalProperties: true,
    description:
      "A null is the same as leaving the field out. Fields that are not listed, such as `metadata`, `truncation` and `user`, are accepted and have no effect.",
  },
);
/** The request in which every message has its `type`: the validator checks this form, and the codec reads it. */
export const TypedResponsesRequest = Type.Object(
  { ...requestFields, input: inputOf(typedItem) },
  { maxProperties: properties_max },
);
export type ResponsesRequest = Type.Static<typeof TypedResponsesRequest>;

// ---- request: a conversation that is not answered --------------------------------------------------------------------

const conversationOf = <Item extends TSchema>(item: Item) => ({
  input: optional(inputOf(item)),
  instructions: requestFields.instructions,
  previous_response_id: requestFields.previous_response_id,
  conversation: requestFields.conversation,
  model: requestFields.model,
});

const typedRequest = <Fields extends TProperties>(fields: Fields) =>
  Type.Object({ ...conversationOf(typedItem), ...fields }, { maxProperties: properties_max });

const compactFields = {
  prompt_cache_key: requestFields.prompt_cache_key,
  reasoning: requestFields.reasoning,
  stream: optional(
    Type.Literal(false, {
      type: "boolean",
      "x-unsupported": { "*": "a streamed compaction (send the item 'compaction_trigger' to /v1/responses instead)" },
    }),
  ),
};
const inputOrPrevious = " `input` or `previous_response_id` is required. A null is the same as leaving the field out.";
/**
 * The schema options of requests that send a conversation but get no answer to it, such as a count of its tokens.
 * `model` is the one field that each such request has.
 */
const conversationOptions = ($id: string, description: string) => ({
  $id,
  maxProperties: properties_max,
  ...published([
    eachItem("input", textOfOthers),
    { field: "model", schema: { anyOf: [present("input"), present("previous_response_id")] }, rules: [] },
  ]),
  additionalProperties: true,
  description,
});

export const CompactRequest = Type.Object(
  { ...conversationOf(InputItem), ...compactFields },
  conversationOptions(
    "ResponsesCompactRequest",
    `The conversation to compact.${inputOrPrevious} Fields that are not listed, such as \`tools\`, are accepted and have no effect.`,
  ),
);
export const TypedCompactRequest = typedRequest(compactFields);

const countFields = { tools: requestFields.tools, text: requestFields.text, reasoning: requestFields.reasoning };

export const InputTokensRequest = Type.Object(
  { ...conversationOf(InputItem), ...countFields },
  conversationOptions(
    "ResponsesInputTokensRequest",
    `The request to count, as it would be sent to \`/v1/responses\`.${inputOrPrevious}`,
  ),
);
export const TypedInputTokensRequest = typedRequest(countFields);

export const InputTokens = Type.Object(
  { object: Type.Literal("response.input_tokens"), input_tokens: Type.Integer({ minimum: 1 }) },
  { $id: "ResponsesInputTokens" },
);

// ---- response: items -------------------------------------------------------------------------------------------------

const itemStatus = oneOf(["in_progress", "completed", "incomplete"]);
export type ItemStatus = Type.Static<typeof itemStatus>;

const logprobKeys = { token: text, logprob: Type.Number(), bytes: Type.Array(Type.Integer()) };
export const ResponsesLogprob = Type.Object(
  { ...logprobKeys, top_logprobs: Type.Array(Type.Object(logprobKeys)) },
  { $id: "ResponsesLogprob" },
);
export type ResponsesLogprob = Type.Static<typeof ResponsesLogprob>;

const OutputText = tagged(
  "output_text",
  { text, annotations: Type.Array(Type.Unknown()), logprobs: Type.Array(ResponsesLogprob) },
  { $id: "ResponsesOutputText" },
);
const OutputRefusal = tagged("refusal", { refusal: text }, { $id: "ResponsesOutputRefusal" });
const ReasoningText = tagged("reasoning_text", { text }, { $id: "ResponsesReasoningText" });
export const SummaryText = tagged("summary_text", { text }, { $id: "ResponsesSummaryText" });
export type SummaryText = Type.Static<typeof SummaryText>;
export const ContentPart = Type.Union([OutputText, OutputRefusal, ReasoningText], { $id: "ResponsesContentPart" });
export type ContentPart = Type.Static<typeof ContentPart>;

const hex = "[0-9a-f]{32,}";
export const itemId = (prefix: string) => Type.String({ pattern: `^${prefix}_${hex}$` });

const outputItem = <Kind extends string, Keys extends TProperties>(
  prefix: string,
  type: Kind,
  keys: Keys,
  options: TObjectOptions,
) => Type.Object({ id: itemId(prefix), type: Type.Literal(type), status: itemStatus, ...keys }, options);

const OutputMessage = outputItem(
  "msg",
  "message",
  { role: Type.Literal("assistant"), content: Type.Array(Type.Union([OutputText, OutputRefusal])) },
  { $id: "ResponsesOutputMessage" },
);
const OutputFunctionCall = outputItem(
  "fc",
  "function_call",
  { call_id: text, name: text, arguments: text, namespace: Type.Optional(text) },
  { $id: "ResponsesOutputFunctionCall" },
);
const OutputCustomCall = outputItem(
  "ctc",
  "custom_tool_call",
  { call_id: text, name: text, input: text, namespace: Type.Optional(text) },
  { $id: "ResponsesOutputCustomToolCall" },
);
const OutputReasoning = outputItem(
  "rs",
  "reasoning",
  { summary: Type.Array(SummaryText), content: Type.Array(ReasoningText), encrypted_content: Type.Optional(text) },
  {
    $id: "ResponsesOutputReasoning",
    description:
      "Its text is in `summary` if `reasoning.summary` requested one, otherwise in `content`; never in both.",
  },
);
export const OutputCompaction = Type.Object(
  { id: itemId("cmp"), type: Type.Literal("compaction"), encrypted_content: text },
  {
    $id: "ResponsesOutputCompaction",
    description:
      "The summary of a conversation, as text behind `compaction.1:`. Send it back in place of the conversation.",
  },
);
export type OutputCompaction = Type.Static<typeof OutputCompaction>;
export const OutputItem = Type.Union(
  [OutputMessage, OutputFunctionCall, OutputCustomCall, OutputReasoning, OutputCompaction],
  { $id: "ResponsesOutputItem" },
);
export type OutputItem = Type.Static<typeof OutputItem>;
export type AnswerItem = Exclude<OutputItem, OutputCompaction>;

// ---- response --------------------------------------------------------------------------------------------------------

export const ResponsesUsage = Type.Object(
  {
    input_tokens: Type.Integer({ minimum: 0, description: "Includes cached tokens." }),
    input_tokens_details: Type.Object({ cached_tokens: count(), cache_write_tokens: count() }),
    output_tokens: Type.Integer({ minimum: 0, description: "Reasoning included." }),
    output_tokens_details: Type.Object({ reasoning_tokens: count() }),
    total_tokens: count(),
  },
  { $id: "ResponsesUsage" },
);
export type ResponsesUsage = Type.Static<typeof ResponsesUsage>;

export const ResponseFailure = Type.Object(
  {
    code: oneOf([
      "server_error",
      "rate_limit_exceeded",
      "invalid_prompt",
      "context_length_exceeded",
      "insufficient_quota",
    ]),
    message: text,
    request_id: text,
  },
  { $id: "ResponseFailure", description: "The codes that coding agents know." },
);
export type ResponseFailure = Type.Static<typeof ResponseFailure>;

export const ResponseObject = Type.Object(
  {
    id: Type.String({ pattern: `^resp_[0-9a-f]{32}$` }),
    object: Type.Literal("response"),
    created_at: unixSeconds,
    completed_at: nullable(unixSeconds),
    status: oneOf(["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]),
    error: nullable(ResponseFailure),
    incomplete_details: nullable(Type.Object({ reason: oneOf(["max_output_tokens", "content_filter"]) })),
    model: ModelId,
    output: Type.Array(OutputItem),
    usage: nullable(ResponsesUsage),
    previous_response_id: nullable(text),
    instructions: nullable(text),
    tools: Type.Array(openObject()),
    tool_choice: ResponsesToolChoice,
    parallel_tool_calls: flag,
    max_output_tokens: nullable(Type.Integer()),
    max_tool_calls: nullable(Type.Integer()),
    temperature: Type.Number(),
    top_p: Type.Number(),
    presence_penalty: Type.Number(),
    frequency_penalty: Type.Number(),
    top_logprobs: Type.Integer(),
    text: openObject({}, { format: TextFormat }),
    reasoning: openObject(),
    truncation: oneOf(["disabled"]),
    store: flag,
    background: flag,
    service_tier: text,
    metadata: openObject(),
    safety_identifier: nullable(text),
    prompt_cache_key: nullable(text),
  },
  { $id: "Response" },
);
export type ResponseObject = Type.Static<typeof ResponseObject>;

// ---- stream events ---------------------------------------------------------------------------------------------------

const event = <Kind extends string, Keys extends TProperties>(type: Kind, keys: Keys) =>
  Type.Object({ type: Type.Literal(type), sequence_number: count(), ...keys });

const item = { output_index: count(), item: OutputItem };
const inner = { item_id: text, output_index: count() };
const content = { ...inner, content_index: count() };
const summary = { ...inner, summary_index: count() };
const logprobs = Type.Array(ResponsesLogprob);
const snapshot = { response: ResponseObject };

export const ResponsesStreamEvent = Type.Union(
  [
    event("response.created", snapshot),
    event("response.in_progress", snapshot),
    event("response.output_item.added", item),
    event("response.output_item.done", item),
    event("response.content_part.added", { ...content, part: ContentPart }),
    event("response.content_part.done", { ...content, part: ContentPart }),
    event("response.output_text.delta", { ...content, delta: text, logprobs }),
    event("response.output_text.done", { ...content, text, logprobs }),
    event("response.refusal.delta", { ...content, delta: text }),
    event("response.refusal.done", { ...content, refusal: text }),
    event("response.reasoning_text.delta", { ...content, delta: text }),
    event("response.reasoning_text.done", { ...content, text }),
    event("response.reasoning_summary_part.added", { ...summary, part: SummaryText }),
    event("response.reasoning_summary_part.done", { ...summary, part: SummaryText }),
    event("response.reasoning_summary_text.delta", { ...summary, delta: text }),
    event("response.reasoning_summary_text.done", { ...summary, text }),
    event("response.function_call_arguments.delta", { ...inner, delta: text }),
    event("response.function_call_arguments.done", { ...inner, name: text, arguments: text }),
    event("response.custom_tool_call_input.delta", { ...inner, delta: text }),
    event("response.custom_tool_call_input.done", { ...inner, input: text }),
    event("response.completed", snapshot),
    event("response.incomplete", snapshot),
    event("response.failed", snapshot),
  ],
  {
    $id: "ResponsesStreamEvent",
    description: "`sequence_number` counts up from 0 without a gap. Items never overlap. `[DONE]` is last.",
  },
);
export type ResponsesStreamEvent = Type.Static<typeof ResponsesStreamEvent>;

// ---- errors ----------------------------------------------------------------------------------------------------------

/** The error envelope of chat completions, with one more type, by which Codex recognises a reached usage limit. */
export const ResponsesError = openaiError("ResponsesError", { types: ["usage_limit_reached"], param: "input[3].role" });
export type ResponsesError = Type.Static<typeof ResponsesError>;
