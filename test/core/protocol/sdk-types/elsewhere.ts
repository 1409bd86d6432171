/**
 * The other values of `type` in the SDKs' files, listed by the reason why the tables have no place for them. A new
 * value that is not here fails the test (../sdk-types.test.ts): someone has to decide whether a client may send it, or
 * an engine answer with it.
 */
import type { File } from "./declarations.ts";
import { under } from "./place.ts";

type Groups = Record<string, readonly string[]>;

const insideHostedResults = [
  ...under("bash_code_execution_", "output", "result", "tool_result_error"),
  ...under("code_execution_", "output", "result", "tool_result_error"),
  "encrypted_code_execution_result",
  ...under("text_editor_code_execution_", "create_result", "str_replace_result", "tool_result_error", "view_result"),
  ...under("tool_search_tool_", "result_error", "search_result"),
  ...under("web_fetch_", "result", "tool_result_error"),
  ...under("web_search_", "result", "tool_result_error"),
];

const messages: Groups = {
  "inside the results of hosted tools, which are refused": insideHostedResults,
  "inside browser use, which is refused": [
    "coordinate",
    ...under("download_", "completed", "failed", "started"),
    "ref",
    "tab_opened",
  ],
  "settings of hosted tools, which are left out": ["all", "anthropic", "approximate", "except", "only"],
  "who called a tool, which is left out": ["direct"],
  "marks on a cache: docs/protocols.md, `cache_control`": ["ephemeral"],
  "the answer itself, a JSON Schema, and details of an answer": ["message", "object", "refusal"],
  "diagnostics of caches, which are left out": [
    ...["messages_changed", "model_changed", "system_changed", "tools_changed"],
    ...["previous_message_not_found", "unavailable"],
  ],
};

const betaMessages: Groups = {
  ...messages,
  "inside the results of the advisor, which are refused": [
    ...under("advisor_", "message", "redacted_result", "result", "tool_result_error"),
  ],
  "settings of edits of the context, and of compaction": [
    "input_tokens",
    "summarize",
    "thinking_turns",
    "tokens",
    "tool_uses",
  ],
  "what `thread` holds, which is refused": ["continue", "create"],
  "details of an answer that no engine behind this service makes": [
    "billing_policy",
    "fallback_message",
    "not_applied",
    "redeemed",
    "thinking_dropped",
    "thinking_mismatch_allowed",
  ],
};

const responses: Groups = {
  "inside the calls of hosted tools and their results, which are refused": [
    "approximate",
    "exec",
    "exit",
    "find_in_page",
    "http_error",
    "image",
    "local",
    "logs",
    "mcp_protocol_error",
    "mcp_tool_execution_error",
    "open_page",
    "search",
    "timeout",
    "url",
  ],
  "inside computer use, which is refused": [
    "click",
    "computer_screenshot",
    "double_click",
    "drag",
    "keypress",
    "move",
    "screenshot",
    "scroll",
    "type",
    "wait",
  ],
  "inside the apply_patch tool, which is refused": ["create_file", "delete_file", "update_file"],
  "settings of containers and shells, which are refused": [
    "allowlist",
    "auto",
    "base64",
    "container_auto",
    "container_reference",
    "disabled",
    "inline",
    "skill_reference",
  ],
  "who called a tool, which is left out": ["direct"],
  "annotations, which are left out": ["container_file_citation", "file_citation", "file_path", "url_citation"],
  "sound, which is refused: docs/protocols.md": ["input_audio", "output_audio"],
  "diagnostics and moderation of an answer, which no engine behind this service makes": [
    "cache_hit",
    "cache_miss",
    "comparison_response_not_found",
    "moderation_result",
    "unavailable",
  ],
  "of the WebSocket alone": [
    "invalid_request_error",
    ...["response.create", "response.steer"],
    ...under("response.steer.", "accepted", "failed", "pending"),
  ],
};

export const elsewhere: Record<Exclude<File, "shared">, Groups> = {
  messages,
  betaMessages,
  chat: {
    "of a prediction, which is left out": ["content"],
    "settings of web search, which is refused": ["approximate"],
    "of moderation, which is refused": ["error", "moderation_result", "moderation_results"],
  },
  responses,
  betaResponses: {
    ...responses,
    "inside messages of several agents, which are refused": ["encrypted_content"],
    "filters of file search, which is left out": ["and", "eq", "gt", "gte", "in", "lt", "lte", "ne", "nin", "or"],
    "the format of a custom tool: docs/protocols.md": ["grammar"],
    "of the WebSocket with several agents": ["response.inject", "response.inject.created", "response.inject.failed"],
  },
};
