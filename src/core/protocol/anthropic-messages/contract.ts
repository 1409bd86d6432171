/**
 * The wire shapes of Messages: for each a typebox value, and where it is needed the static type of the same name. Validation,
 * types and the OpenAPI document are made from them. Rules: docs/design/service.md, Adapters; docs/design/protocols.md,
 * Messages requests.
 *
 * Keys that have an effect are typed. Further keys of any type are accepted everywhere, and have no effect.
 */
import Type from "typebox";
import { clientFaultCodes, faultCatalogue } from "../../inference/fault.ts";
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
  unsupported,
} from "../shapes/contract.ts";

const base64 = (what: string) => Type.String({ minLength: 1, "x-must-be": `${what} in base64` });

// ---- request: content blocks -----------------------------------------------------------------------------------------

/**
 * A block of text. Keys beside the text, such as `cache_control` and the `citations` of an earlier answer, go only to
 * engines that speak Messages.
 */
export const TextBlockParam = tagged("text", { text }, { $id: "TextBlockParam" });
export type TextBlockParam = Type.Static<typeof TextBlockParam>;

const byId = { file: "files by id (send the data itself)" };

const ImageSource = Type.Union(
  [
    tagged("base64", {
      media_type: oneOf(["image/jpeg", "image/png", "image/gif", "image/webp"]),
      data: base64("an image"),
    }),
    tagged("url", { url: imageUrl }),
  ],
  { $id: "ImageSource", "x-unsupported": byId },
);

export const ImageBlockParam = tagged(
  "image",
  { source: ImageSource },
  { $id: "ImageBlockParam", description: "Needs a model with the capability `vision`." },
);
export type ImageBlockParam = Type.Static<typeof ImageBlockParam>;

const DocumentSource = Type.Union(
  [
    tagged("base64", { media_type: Type.Literal("application/pdf"), data: base64("a PDF") }),
    tagged("text", { media_type: Type.Literal("text/plain"), data: text }),
    tagged("content", { content: Type.Union([text, list(Type.Union([TextBlockParam, ImageBlockParam]))]) }),
  ],
  { $id: "DocumentSource", "x-unsupported": { ...byId, url: "documents by URL (send the data itself)" } },
);

export const DocumentBlockParam = tagged(
  "document",
  {
    source: DocumentSource,
    title: optional(text),
    context: optional(text),
    citations: optional(
      Type.Object(
        { enabled: optional(flag) },
        { description: "If enabled, citations need a model whose engine speaks Messages." },
      ),
    ),
  },
  { $id: "DocumentBlockParam", description: "Every model reads text. A PDF needs the capability `files`." },
);
export type DocumentBlockParam = Type.Static<typeof DocumentBlockParam>;

export const SearchResultBlockParam = tagged(
  "search_result",
  {
    source: text,
    title: text,
    content: list(TextBlockParam),
    citations: optional(Type.Object({ enabled: optional(flag) })),
  },
  { $id: "SearchResultBlockParam" },
);
export type SearchResultBlockParam = Type.Static<typeof SearchResultBlockParam>;

const ToolReferenceBlockParam = tagged(
  "tool_reference",
  { tool_name: nonEmpty },
  {
    $id: "ToolReferenceBlockParam",
    description: "A tool that the caller's tool search found. The model gets to know it.",
  },
);

export const ToolResultContent = Type.Union(
  [TextBlockParam, ImageBlockParam, DocumentBlockParam, SearchResultBlockParam, ToolReferenceBlockParam],
  { $id: "ToolResultContent", "x-unsupported": { browser_state: "browser use" } },
);
export type ToolResultContent = Type.Static<typeof ToolResultContent>;

export const ToolResultBlockParam = tagged(
  "tool_result",
  { tool_use_id: nonEmpty, content: optional(Type.Union([text, list(ToolResultContent)])), is_error: optional(flag) },
  { $id: "ToolResultBlockParam", description: "The result of a tool use in an earlier assistant message." },
);
export type ToolResultBlockParam = Type.Static<typeof ToolResultBlockParam>;

const ToolUseBlockParam = tagged(
  "tool_use",
  { id: nonEmpty, name: nonEmpty, input: optional(anyObject()) },
  { $id: "ToolUseBlockParam" },
);

const ThinkingBlockParam = tagged(
  "thinking",
  { thinking: text, signature: optional(text) },
  { $id: "ThinkingBlockParam", description: "Accepted with any signature, even of another service." },
);

const RedactedThinkingBlockParam = tagged("redacted_thinking", { data: text }, { $id: "RedactedThinkingBlockParam" });

/** Content blocks that only Anthropic's own service understands. */
const hostedBlocks = refusedKinds({
  containers: ["container_upload"],
  "tools that run at the service": ["server_tool_use"],
  "web search": ["web_search_tool_result"],
  "web fetch": ["web_fetch_tool_result"],
  "code execution": [
    "code_execution_tool_result",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
  ],
  "tool search at the service": ["tool_search_tool_result"],
  "the advisor tool": ["advisor_tool_result"],
  "MCP servers": ["mcp_tool_use", "mcp_tool_result", "mcp_tool_listing"],
  compaction: ["compaction"],
  "fallback models": ["fallback"],
  "browser use": ["browser_state"],
});
/** The types of blocks in system messages that change the tools, and have no content. */
export const toolChangeTypes = ["tool_addition", "tool_removal"];
const misplacedChanges = refusedKinds({
  "changes of the tools in this role (send them in a system message)": toolChangeTypes,
});

export const UserContentBlock = Type.Union(
  [TextBlockParam, ImageBlockParam, DocumentBlockParam, SearchResultBlockParam, ToolResultBlockParam],
  { $id: "UserContentBlock", "x-unsupported": { ...hostedBlocks, ...misplacedChanges } },
);
export type UserContentBlock = Type.Static<typeof UserContentBlock>;

const misplacedMedia = { image: "an image in this role", document: "a document in this role" };

export const AssistantContentBlock = Type.Union(
  [TextBlockParam, ThinkingBlockParam, RedactedThinkingBlockParam, ToolUseBlockParam],
  { $id: "AssistantContentBlock", "x-unsupported": { ...hostedBlocks, ...misplacedChanges, ...misplacedMedia } },
);
export type AssistantContentBlock = Type.Static<typeof AssistantContentBlock>;

// ---- request: tools --------------------------------------------------------------------------------------------------

/** One shape for all kinds of tools. tools.ts has the kinds, and validate.ts the fields that each requires. */
export const MessagesTool = Type.Object(
  {
    type: optional(Type.String({ description: "Absent, null or `custom`: a tool that the caller runs." })),
    name: optional(
      Type.String({
        pattern: "^[a-zA-Z0-9_-]{1,128}$",
        "x-must-be": "1 to 128 letters, digits, underscores or hyphens",
      }),
    ),
    description: optional(text),
    input_schema: optional(
      anyObject({ description: "A JSON Schema of an object." }, { type: Type.Optional(Type.Literal("object")) }),
    ),
    strict: optional(flag),
    defer_loading: optional(
      Type.Boolean({ description: "Engines other than Anthropic's get this tool like any other." }),
    ),
  },
  {
    $id: "MessagesTool",
    description:
      "A tool that the caller runs has `name` and `input_schema`. The bash, text editor and memory tools have a `type` and the name that belongs to it; the model sees them as functions with their published schemas. The model does not see tools that run on Anthropic's servers. A request that lists only those is refused.",
  },
);
export type MessagesTool = Type.Static<typeof MessagesTool>;

const byServer = { mcp_tool_reference: "MCP servers", mcp_toolset_reference: "MCP servers" };

const ToolByName = tagged(
  "tool_reference",
  { name: nonEmpty },
  { $id: "ToolByName", description: "A tool of `tools`, or of an earlier `tool_addition`." },
);

const ToolByValue = tagged(
  "tool_definition",
  { definition: MessagesTool },
  { $id: "ToolByValue", description: "Replaces an earlier tool of the same name and kind." },
);

export const ToolAdditionBlockParam = tagged(
  "tool_addition",
  { tool: Type.Union([ToolByName, ToolByValue], { "x-unsupported": byServer }) },
  { $id: "ToolAdditionBlockParam", description: "From here on the model may call this tool." },
);
export type ToolAdditionBlockParam = Type.Static<typeof ToolAdditionBlockParam>;

export const ToolRemovalBlockParam = tagged(
  "tool_removal",
  { tool: Type.Union([ToolByName], { "x-unsupported": byServer }) },
  { $id: "ToolRemovalBlockParam", description: "From here on the model does not see this tool." },
);
export type ToolRemovalBlockParam = Type.Static<typeof ToolRemovalBlockParam>;

const SystemContentBlock = Type.Union([TextBlockParam, ToolAdditionBlockParam, ToolRemovalBlockParam], {
  $id: "SystemContentBlock",
  "x-unsupported": { ...hostedBlocks, ...misplacedMedia },
});

// ---- request: messages -----------------------------------------------------------------------------------------------

const UserMessageParam = Type.Object(
  { role: Type.Literal("user"), content: Type.Union([text, list(UserContentBlock, { minItems: 1 })]) },
  { $id: "UserMessageParam" },
);

const AssistantMessageParam = Type.Object(
  { role: Type.Literal("assistant"), content: Type.Union([text, list(AssistantContentBlock)]) },
  { $id: "AssistantMessageParam" },
);

const effort = () =>
  optional(
    oneOf(["low", "medium", "high", "xhigh", "max"], { description: "A hint: ignored if the model does not reason." }),
  );

export const SystemMessageParam = Type.Object(
  {
    role: Type.Literal("system"),
    content: optional(Type.Union([text, list(SystemContentBlock)])),
    clear_at: optional(
      oneOf(["never", "next_user_message"], {
        description: "With `next_user_message`, the model does not see this message if one of the user comes after it.",
      }),
    ),
    output_config: optional(
      Type.Object({ effort: effort() }, { description: "Holds from the next message of the user on." }),
    ),
  },
  { $id: "SystemMessageParam" },
);
export type SystemMessageParam = Type.Static<typeof SystemMessageParam>;

export const MessageParam = Type.Union([UserMessageParam, AssistantMessageParam, SystemMessageParam], {
  $id: "MessageParam",
  description:
    "Consecutive messages of one role are one turn. If the last message is the assistant's, the answer continues it.",
});
export type MessageParam = Type.Static<typeof MessageParam>;

/** The `type` of tools that the caller runs. They may omit it. */
export const callerToolType = "custom";
/** The entry that Claude Code lists in place of tools that it has not loaded yet. It is never called, and needs no schema. */
export const toolPlaceholder = { name: "DeferredToolPlaceholder", defer_loading: true } as const;

const alone = { disable_parallel_tool_use: optional(flag) };
export const MessagesToolChoice = Type.Union(
  [tagged("auto", alone), tagged("any", alone), tagged("tool", { name: nonEmpty, ...alone }), tagged("none", {})],
  { $id: "MessagesToolChoice" },
);
export type MessagesToolChoice = Type.Static<typeof MessagesToolChoice>;

// ---- request ---------------------------------------------------------------------------------------------------------

const Thinking = Type.Union(
  [
    tagged("enabled", { budget_tokens: Type.Integer({ minimum: 1 }) }),
    tagged("adaptive", {}),
    tagged("between_tools", {}),
    tagged("disabled", {}),
  ],
  { $id: "Thinking", description: "A hint: ignored if the model does not reason." },
);

const JsonOutputFormat = tagged(
  "json_schema",
  { schema: anyObject({ description: "A JSON Schema." }) },
  { $id: "JsonOutputFormat", description: "Needs a model with the capability `structured_output`." },
);

const OutputConfig = Type.Object({ effort: effort(), format: optional(JsonOutputFormat) }, { $id: "OutputConfig" });

const ContextManagement = Type.Object(
  {
    edits: optional(
      list(
        Type.Object({
          type: oneOf(["clear_thinking_20251015"], {
            "x-unsupported": {
              clear_tool_uses_20250919: "clearing tool uses from the context",
              compact_20260112: "compaction by the service (have your client summarize the conversation)",
              "*": "an edit of the context other than clear_thinking_20251015",
            },
          }),
        }),
      ),
    ),
  },
  { $id: "ContextManagement", description: "Accepted without effect: thinking is not removed." },
);

const conversation = {
  model: ModelId,
  messages: Type.Array(MessageParam, { minItems: 1, maxItems: turns_max }),
  system: optional(Type.Union([text, list(TextBlockParam)])),
  tools: optional(list(MessagesTool)),
  tool_choice: optional(MessagesToolChoice),
  thinking: optional(Thinking),
  output_config: optional(OutputConfig),
};

export const MessagesRequest = Type.Object(
  {
    ...conversation,
    max_tokens: Type.Integer({
      minimum: 1,
      description: "Includes reasoning. A value above the model's own limit is lowered to it.",
    }),
    stream: optional(Type.Boolean({ default: false, description: "Answer with server-sent events." })),
    stop_sequences: optional(list(nonEmpty)),
    temperature: optional(Type.Number({ minimum: 0, maximum: 1 })),
    top_p: optional(Type.Number({ minimum: 0, maximum: 1 })),
    top_k: optional(Type.Integer({ minimum: 0 })),
    output_format: optional(JsonOutputFormat),
    context_management: optional(ContextManagement),
    mcp_servers: optional(
      Type.Array(Type.Unknown(), {
        maxItems: 0,
        description: "Not supported: MCP servers. May be empty.",
        "x-unsupported": { "*": "MCP servers" },
      }),
    ),
    metadata: optional(
      anyObject({
        description:
          "Not forwarded. Requests with the same `user_id` are routed so that they can share a prompt cache.",
      }),
    ),
    container: unsupported("containers"),
    compaction: unsupported("compaction"),
    thread: unsupported("message threads (send the whole conversation)"),
  },
  {
    $id: "MessagesRequest",
    maxProperties: properties_max,
    description: "A null is the same as leaving the field out. Other fields are accepted and have no effect.",
  },
);
export type MessagesRequest = Type.Static<typeof MessagesRequest>;

export const CountTokensRequest = Type.Object(conversation, {
  $id: "CountTokensRequest",
  maxProperties: properties_max,
  description: "The input of a Messages request. Everything else is accepted and ignored.",
});
export type CountTokensRequest = Type.Static<typeof CountTokensRequest>;

export const TokenEstimate = Type.Object(
  { input_tokens: Type.Integer({ minimum: 0, description: "In system, messages and tools together." }) },
  { $id: "TokenEstimate" },
);

// ---- response --------------------------------------------------------------------------------------------------------

export const MessagesUsage = Type.Object(
  {
    input_tokens: Type.Integer({ minimum: 0, description: "Without cached tokens, which are counted separately." }),
    cache_creation_input_tokens: count(),
    cache_read_input_tokens: count(),
    output_tokens: Type.Integer({ minimum: 0, description: "Thinking included." }),
    output_tokens_details: Type.Optional(Type.Object({ thinking_tokens: count() })),
  },
  { $id: "MessagesUsage" },
);
export type MessagesUsage = Type.Static<typeof MessagesUsage>;

const TextBlock = tagged(
  "text",
  { text, citations: Type.Optional(Type.Array(openObject(), { description: "From an engine that speaks Messages." })) },
  { $id: "TextBlock" },
);

const ThinkingBlock = tagged(
  "thinking",
  { thinking: text, signature: text },
  { $id: "ThinkingBlock", description: "Send it back as it is." },
);

const RedactedThinkingBlock = tagged("redacted_thinking", { data: text }, { $id: "RedactedThinkingBlock" });

const ToolUseBlock = tagged("tool_use", { id: nonEmpty, name: nonEmpty, input: openObject() }, { $id: "ToolUseBlock" });

export const ContentBlock = Type.Union([TextBlock, ThinkingBlock, RedactedThinkingBlock, ToolUseBlock], {
  $id: "ContentBlock",
});
export type ContentBlock = Type.Static<typeof ContentBlock>;

export const MessagesStopReason = oneOf(["end_turn", "max_tokens", "stop_sequence", "tool_use", "refusal"], {
  $id: "MessagesStopReason",
});
export type MessagesStopReason = Type.Static<typeof MessagesStopReason>;

const messageKeys = {
  id: Type.String({ pattern: "^msg_[0-9a-f]{32}$" }),
  type: Type.Literal("message"),
  role: Type.Literal("assistant"),
  model: ModelId,
};

export const Message = Type.Object(
  {
    ...messageKeys,
    content: Type.Array(ContentBlock),
    stop_reason: MessagesStopReason,
    stop_sequence: nullable(Type.String({ description: "Which of `stop_sequences` ended the answer." })),
    usage: MessagesUsage,
  },
  { $id: "Message" },
);
export type Message = Type.Static<typeof Message>;

// ---- stream ----------------------------------------------------------------------------------------------------------

const MessageStartEvent = tagged(
  "message_start",
  {
    message: Type.Object({
      ...messageKeys,
      content: Type.Array(ContentBlock, { maxItems: 0 }),
      stop_reason: Type.Null(),
      stop_sequence: Type.Null(),
      usage: MessagesUsage,
    }),
  },
  { $id: "MessageStartEvent", description: "Its usage is an estimate; `message_delta` has the final counts." },
);

const ContentBlockStartEvent = tagged(
  "content_block_start",
  { index: count(), content_block: ContentBlock },
  { $id: "ContentBlockStartEvent" },
);

export const ContentBlockDelta = Type.Union(
  [
    tagged("text_delta", { text }),
    tagged("input_json_delta", { partial_json: text }),
    tagged("thinking_delta", { thinking: text }),
    tagged("signature_delta", { signature: text }),
    tagged("citations_delta", { citation: openObject() }),
  ],
  { $id: "ContentBlockDelta" },
);
export type ContentBlockDelta = Type.Static<typeof ContentBlockDelta>;

const ContentBlockDeltaEvent = tagged(
  "content_block_delta",
  { index: count(), delta: ContentBlockDelta },
  { $id: "ContentBlockDeltaEvent" },
);

const ContentBlockStopEvent = tagged("content_block_stop", { index: count() }, { $id: "ContentBlockStopEvent" });

const MessageDeltaEvent = tagged(
  "message_delta",
  { delta: Type.Object({ stop_reason: MessagesStopReason, stop_sequence: nullable(text) }), usage: MessagesUsage },
  { $id: "MessageDeltaEvent", description: "Totals of the whole message." },
);

const MessageStopEvent = tagged("message_stop", {}, { $id: "MessageStopEvent" });

const PingEvent = tagged("ping", {}, { $id: "PingEvent" });

// ---- errors ----------------------------------------------------------------------------------------------------------

const faultTypes = [...new Set(Object.values(faultCatalogue).map((entry) => entry.messages))];

export const MessagesError = tagged(
  "error",
  {
    error: Type.Object({
      type: Type.Enum(faultTypes, { type: "string" }),
      message: Type.String({
        minLength: 1,
        description: "The path of the offending field, if there is one, then what is wrong and what to do about it.",
      }),
      details: Type.Optional(
        openObject(
          { description: "`error_code` is for programs." },
          { error_code: Type.Enum([...clientFaultCodes, "thread_unsupported_request"], { type: "string" }) },
        ),
      ),
    }),
    request_id: Type.String({ pattern: "^req_[0-9a-f]{32}$", description: "Equals `x-service-request-id`." }),
  },
  { $id: "MessagesError" },
);
export type MessagesError = Type.Static<typeof MessagesError>;

export const MessageStreamEvent = Type.Union(
  [
    MessageStartEvent,
    ContentBlockStartEvent,
    ContentBlockDeltaEvent,
    ContentBlockStopEvent,
    MessageDeltaEvent,
    MessageStopEvent,
    PingEvent,
    MessagesError,
  ],
  {
    $id: "MessageStreamEvent",
    description: "Each event is named by its `type`. Blocks never overlap. An `error` event ends a stream that failed.",
  },
);
export type MessageStreamEvent = Type.Static<typeof MessageStreamEvent>;
