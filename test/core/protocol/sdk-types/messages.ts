/** The treatment of each type in Anthropic's SDK for Messages, including the beta. */
import { publishedTools } from "../../../../src/core/protocol/anthropic-messages/published-tools.ts";
import { citations } from "../losses/answers.ts";
import { assistant, says, text, user } from "../losses/probe.ts";
import { typesOf } from "./declarations.ts";
import { carried, each, leftOut, type Place, passedOver, placesOf, refused, under, union } from "./place.ts";

const { request, answer, events } = placesOf("messages");
const stable = (name: string) => typesOf("messages", name);
const beta = (name: string) => typesOf("betaMessages", name);

const tool = { name: "f", input_schema: { type: "object" } };
const inUser = (block: object) => says(user(block));
const inAssistant = (block: object) => says(user(text("a")), assistant(block, text("b")), user(text("c")));
const inSystem = (block: object) => ({ tools: [tool], ...says(user(text("a")), { role: "system", content: [block] }) });
const called = assistant({ type: "tool_use", id: "c1", name: "f", input: {} });
const result = (content: unknown) =>
  says(user(text("a")), called, user({ type: "tool_result", tool_use_id: "c1", content }));
const refusedIn = (place: (block: object) => object, param: string) => (type: string) => [
  { body: place({ type }), param },
];

const reply = (...content: object[]) => ({ role: "assistant", content, stop_reason: "end_turn", usage: {} });

/** Blocks of tools that the provider of the model runs. */
const hostedBlocks = [
  "advisor_tool_result",
  "bash_code_execution_tool_result",
  "code_execution_tool_result",
  "compaction",
  "container_upload",
  "fallback",
  "mcp_tool_listing",
  "mcp_tool_result",
  "mcp_tool_use",
  "server_tool_use",
  "text_editor_code_execution_tool_result",
  "tool_search_tool_result",
  "web_fetch_tool_result",
  "web_search_tool_result",
];

export const messagesPlaces: Record<string, Place> = {
  "Messages: block of a message": request(
    ["messages<user>.content", "messages<assistant>.content", "messages<system>.content"],
    union(stable("ContentBlockParam"), beta("BetaContentBlockParam")),
    {
      ...carried("text", "image", "document", "search_result", "tool_use", "tool_result", "thinking"),
      ...carried("redacted_thinking", "tool_addition", "tool_removal"),
      ...each(hostedBlocks, () => refused),
    },
    (type) => [
      { body: inUser({ type }), param: "messages[0].content[0].type" },
      { body: inAssistant({ type }), param: "messages[1].content[0].type" },
      { body: inSystem({ type }), param: "messages[1].content[0].type" },
    ],
  ),
  "Messages: block of a system message": request(
    ["messages<system>.content"],
    union(stable("SystemMessageParam.content"), beta("BetaSystemMessageParam.content")),
    carried("text", "tool_addition", "tool_removal"),
    refusedIn(inSystem, "messages[1].content[0].type"),
  ),
  "Messages: tool that is added or removed": request(
    ["messages<system>.content<tool_addition>.tool", "messages<system>.content<tool_removal>.tool"],
    union(beta("BetaRequestToolAdditionBlock.tool"), beta("BetaRequestToolRemovalBlock.tool")),
    {
      ...carried("tool_reference", "tool_definition"),
      mcp_tool_reference: refused,
      mcp_toolset_reference: refused,
    },
    (type) =>
      ["tool_addition", "tool_removal"].map((change) => ({
        body: inSystem({ type: change, tool: { type, server_name: "s" } }),
        param: "messages[1].content[0].tool.type",
      })),
  ),
  "Messages: part of a tool's result": request(
    ["messages<user>.content<tool_result>.content"],
    union(stable("ToolResultBlockParam.content"), beta("BetaToolResultBlockParam.content")),
    { ...carried("text", "image", "document", "search_result", "tool_reference"), browser_state: refused },
    refusedIn((block) => result([block]), "messages[2].content[0].content[0].type"),
  ),
  "Messages: source of an image": request(
    ["messages<user>.content<image>.source"],
    union(stable("ImageBlockParam.source"), beta("BetaImageBlockParam.source")),
    { ...carried("base64", "url"), file: refused },
    refusedIn((source) => inUser({ type: "image", source }), "messages[0].content[0].source.type"),
  ),
  "Messages: source of a document": request(
    ["messages<user>.content<document>.source"],
    union(stable("DocumentBlockParam.source"), beta("BetaRequestDocumentBlock.source")),
    { ...carried("base64", "text", "content"), file: refused, url: refused },
    refusedIn((source) => inUser({ type: "document", source }), "messages[0].content[0].source.type"),
  ),
  "Messages: tool": request(
    ["tools"],
    union(stable("ToolUnion"), beta("BetaToolUnion")),
    {
      ...carried("custom", ...Object.keys(publishedTools)),
      ...each(
        [
          "advisor_20260301",
          "code_execution_20250522",
          "code_execution_20250825",
          "code_execution_20260120",
          "code_execution_20260521",
          "mcp_toolset",
          "tool_search_tool_bm25",
          "tool_search_tool_bm25_20251119",
          "tool_search_tool_regex",
          "tool_search_tool_regex_20251119",
          "web_fetch_20250910",
          "web_fetch_20260209",
          "web_fetch_20260309",
          "web_fetch_20260318",
          "web_search_20250305",
          "web_search_20260209",
          "web_search_20260318",
        ],
        (type) => leftOut({ tools: [tool, { type, name: "x" }] }, { tools: [tool] }),
      ),
      ...each(
        [
          "browser_toolset_20260801",
          "computer_20241022",
          "computer_20250124",
          "computer_20251124",
          "computer_toolset_20260801",
        ],
        () => refused,
      ),
    },
    (type) => [{ body: { tools: [tool, { type, name: "x" }] }, param: "tools[1].type" }],
  ),
  "Messages: choice of a tool": request(
    ["tool_choice"],
    union(stable("ToolChoice"), beta("BetaToolChoice")),
    carried("auto", "any", "none", "tool"),
  ),
  "Messages: thinking": request(
    ["thinking"],
    union(stable("ThinkingConfigParam"), beta("BetaThinkingConfigParam")),
    carried("enabled", "disabled", "adaptive", "between_tools"),
  ),
  "Messages: form of the answer": request(
    ["output_config.format"],
    union(stable("JSONOutputFormat"), beta("BetaJSONOutputFormat")),
    carried("json_schema"),
  ),
  "Messages: edit of the context": request(
    [],
    beta("BetaContextManagementConfig.edits"),
    {
      clear_thinking_20251015: leftOut({ context_management: { edits: [{ type: "clear_thinking_20251015" }] } }, {}),
      clear_tool_uses_20250919: refused,
      compact_20260112: refused,
    },
    refusedIn((edit) => ({ context_management: { edits: [edit] } }), "context_management.edits[0].type"),
  ),
  "Messages: block of an answer": answer(
    ["content"],
    union(stable("ContentBlock"), beta("BetaContentBlock")),
    { ...carried("text", "thinking", "redacted_thinking", "tool_use"), ...each(hostedBlocks, () => passedOver) },
    (type) => reply({ type, id: "x", name: "x", input: {}, content: [] }, text("TEXT")),
  ),
  "Messages: citation of a text": answer(
    ["content<text>.citations"],
    union(stable("TextCitation"), beta("BetaTextCitation")),
    carried(...citations),
  ),
  "Messages: event of a stream": events(
    union(stable("RawMessageStreamEvent"), beta("BetaRawMessageStreamEvent")),
    carried(...under("content_block_", "delta", "start", "stop"), ...under("message_", "delta", "start", "stop")),
  ),
  "Messages: delta of a block": events(union(stable("RawContentBlockDelta"), beta("BetaRawContentBlockDelta")), {
    ...carried("citations_delta", "input_json_delta", "signature_delta", "text_delta", "thinking_delta"),
    compaction_delta: passedOver,
  }),
};
