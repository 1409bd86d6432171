/** How each type of the SDK of Messages is treated, its beta among them. */
import { publishedTools } from "../../../../src/core/protocol/anthropic-messages/published-tools.ts";
import { assistant, png, says, text, user } from "../losses/probe.ts";
import { typesOf } from "./declarations.ts";
import { answered, carried, each, leftOut, type Place, passedOver, placesOf, refused, union } from "./place.ts";

const { request, answer, events } = placesOf("messages");
const stable = (name: string) => typesOf("messages", name);
const beta = (name: string) => typesOf("betaMessages", name);

const tool = { name: "f", input_schema: { type: "object" } };
const inUser = (block: object) => says(user(block));
const inAssistant = (block: object) => says(user(text("a")), assistant(block, text("b")), user(text("c")));
const inSystem = (block: object) => ({ tools: [tool], ...says(user(text("a")), { role: "system", content: [block] }) });
const called = assistant({ type: "tool_use", id: "c1", name: "f", input: { MARK: 1 } });
const result = (content: unknown) =>
  says(user(text("a")), called, user({ type: "tool_result", tool_use_id: "c1", content }));
const image = { type: "image", source: { type: "base64", media_type: "image/png", data: png } };
const document = (source: object) => ({ type: "document", source });
const plain = document({ type: "text", media_type: "text/plain", data: "MARK" });
const found = { type: "search_result", source: "s", title: "t", content: [text("MARK")] };
const reference = { type: "tool_reference", name: "f" };
const refusedIn = (place: (block: object) => object, param: string) => (type: string) => [
  { body: place({ type }), param },
];

const signed = { type: "thinking", thinking: "MARK", signature: "s" };
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
    union(stable("ContentBlockParam"), beta("BetaContentBlockParam")),
    {
      text: carried(inUser(text("MARK")), /MARK/),
      image: carried(inUser(image), /iVBORw0KGgo/),
      document: carried(inUser(plain), /MARK/),
      search_result: carried(inUser(found), /MARK/),
      tool_use: carried(result("a"), /MARK/),
      tool_result: carried(result("RESULT"), /RESULT/),
      thinking: carried(inAssistant(signed), /MARK/),
      redacted_thinking: carried(inAssistant({ type: "redacted_thinking", data: "MARK" }), /MARK/),
      tool_addition: carried(
        inSystem({ type: "tool_addition", tool: { type: "tool_definition", definition: { ...tool, name: "MARK" } } }),
        /MARK/,
      ),
      tool_removal: carried(inSystem({ type: "tool_removal", tool: reference }), /^(?!.*"name":"f")/),
      ...each(hostedBlocks, () => refused),
    },
    (type) => [
      { body: inUser({ type }), param: "messages[0].content[0].type" },
      { body: inAssistant({ type }), param: "messages[1].content[0].type" },
      { body: inSystem({ type }), param: "messages[1].content[0].type" },
    ],
  ),
  "Messages: block of a system message": request(
    union(stable("SystemMessageParam.content"), beta("BetaSystemMessageParam.content")),
    {
      text: carried(inSystem(text("MARK")), /MARK/),
      tool_addition: carried(inSystem({ type: "tool_addition", tool: reference }), /"name":"f"/),
      tool_removal: carried(inSystem({ type: "tool_removal", tool: reference }), /^(?!.*"name":"f")/),
    },
    refusedIn(inSystem, "messages[1].content[0].type"),
  ),
  "Messages: tool that is added or removed": request(
    union(beta("BetaRequestToolAdditionBlock.tool"), beta("BetaRequestToolRemovalBlock.tool")),
    {
      tool_reference: carried(inSystem({ type: "tool_removal", tool: reference }), /^(?!.*"name":"f")/),
      tool_definition: carried(
        inSystem({ type: "tool_addition", tool: { type: "tool_definition", definition: { ...tool, name: "MARK" } } }),
        /MARK/,
      ),
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
    union(stable("ToolResultBlockParam.content"), beta("BetaToolResultBlockParam.content")),
    {
      text: carried(result([text("RESULT")]), /RESULT/),
      image: carried(result([image]), /iVBORw0KGgo/),
      document: carried(result([plain]), /MARK/),
      search_result: carried(result([found]), /MARK/),
      tool_reference: carried(result([{ type: "tool_reference", tool_name: "FOUND" }]), /FOUND/),
      browser_state: refused,
    },
    refusedIn((block) => result([block]), "messages[2].content[0].content[0].type"),
  ),
  "Messages: source of an image": request(
    union(stable("ImageBlockParam.source"), beta("BetaImageBlockParam.source")),
    {
      base64: carried(inUser(image), /iVBORw0KGgo/),
      url: carried(inUser({ type: "image", source: { type: "url", url: "https://MARK" } }), /MARK/),
      file: refused,
    },
    refusedIn((source) => inUser({ type: "image", source }), "messages[0].content[0].source.type"),
  ),
  "Messages: source of a document": request(
    union(stable("DocumentBlockParam.source"), beta("BetaRequestDocumentBlock.source")),
    {
      base64: carried(
        inUser(document({ type: "base64", media_type: "application/pdf", data: "JVBERi0x" })),
        /JVBERi0x/,
      ),
      text: carried(inUser(plain), /MARK/),
      content: carried(inUser(document({ type: "content", content: "MARK" })), /MARK/),
      file: refused,
      url: refused,
    },
    refusedIn((source) => inUser(document(source)), "messages[0].content[0].source.type"),
  ),
  "Messages: tool": request(
    union(stable("ToolUnion"), beta("BetaToolUnion")),
    {
      custom: carried({ tools: [{ ...tool, type: "custom", description: "MARK" }] }, /MARK/),
      ...each(Object.keys(publishedTools), (type) =>
        carried({ tools: [{ type, name: publishedTools[type]!.name }] }, new RegExp(`"${publishedTools[type]!.name}"`)),
      ),
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
  "Messages: choice of a tool": request(union(stable("ToolChoice"), beta("BetaToolChoice")), {
    auto: carried({ tools: [tool], tool_choice: { type: "auto" } }, /"auto"/),
    any: carried({ tools: [tool], tool_choice: { type: "any" } }, /"required"|"any"/),
    none: carried({ tools: [tool], tool_choice: { type: "none" } }, /"none"/),
    tool: carried({ tools: [tool], tool_choice: { type: "tool", name: "f" } }, /"required"|"type":"tool"/),
  }),
  "Messages: thinking": request(union(stable("ThinkingConfigParam"), beta("BetaThinkingConfigParam")), {
    enabled: carried({ thinking: { type: "enabled", budget_tokens: 1024 } }, /"low"|1024/),
    disabled: carried({ thinking: { type: "disabled" } }, /"none"|"disabled"/),
    ...each(["adaptive", "between_tools"], (type) => carried({ thinking: { type } }, new RegExp(type))),
  }),
  "Messages: form of the answer": request(union(stable("JSONOutputFormat"), beta("BetaJSONOutputFormat")), {
    json_schema: carried({ output_config: { format: { type: "json_schema", schema: { MARK: 1 } } } }, /MARK/),
  }),
  "Messages: edit of the context": request(
    beta("BetaContextManagementConfig.edits"),
    {
      clear_thinking_20251015: leftOut({ context_management: { edits: [{ type: "clear_thinking_20251015" }] } }, {}),
      clear_tool_uses_20250919: refused,
      compact_20260112: refused,
    },
    refusedIn((edit) => ({ context_management: { edits: [edit] } }), "context_management.edits[0].type"),
  ),
  "Messages: block of an answer": answer(
    union(stable("ContentBlock"), beta("BetaContentBlock")),
    {
      text: answered(reply(text("MARK")), /MARK/),
      thinking: answered(reply(signed), /MARK/),
      redacted_thinking: answered(reply({ type: "redacted_thinking", data: "MARK" }), /MARK/),
      tool_use: answered(reply({ type: "tool_use", id: "c1", name: "f", input: { MARK: 1 } }), /MARK/),
      ...each(hostedBlocks, () => passedOver),
    },
    (type) => reply({ type, id: "x", name: "x", input: {}, content: [] }, text("TEXT")),
  ),
  "Messages: citation of a text": answer(
    union(stable("TextCitation"), beta("BetaTextCitation")),
    each(
      [
        "char_location",
        "content_block_location",
        "page_location",
        "search_result_location",
        "web_search_result_location",
      ],
      (type) => answered(reply(text("a", { citations: [{ type, cited_text: "MARK" }] })), new RegExp(`${type}.*MARK`)),
    ),
    () => reply(text("TEXT")),
  ),
  "Messages: event of a stream": events(
    union(stable("RawMessageStreamEvent"), beta("BetaRawMessageStreamEvent")),
    each(
      [
        "content_block_delta",
        "content_block_start",
        "content_block_stop",
        "message_delta",
        "message_start",
        "message_stop",
      ],
      () => ({ verdict: "carried" as const }),
    ),
  ),
  "Messages: delta of a block": events(union(stable("RawContentBlockDelta"), beta("BetaRawContentBlockDelta")), {
    ...each(["citations_delta", "input_json_delta", "signature_delta", "text_delta", "thinking_delta"], () => ({
      verdict: "carried" as const,
    })),
    compaction_delta: passedOver,
  }),
};
