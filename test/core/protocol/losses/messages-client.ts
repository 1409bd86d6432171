/** Requests of Messages clients, row by row of docs/protocols.md, and the content that each engine must see. */

import { publishedTools } from "../../../../src/core/protocol/anthropic-messages/published-tools.ts";
import { unsigned } from "../../../../src/core/protocol/anthropic-messages/signature.ts";
import { assistant, type Probe, png, says, text, user } from "./probe.ts";

const image = { type: "image", source: { type: "base64", media_type: "image/png", data: png } };
const pdf = { type: "document", source: { type: "base64", media_type: "application/pdf", data: "JVBERi0x" } };
const plain = (more: object = {}) => ({
  type: "document",
  source: { type: "text", media_type: "text/plain", data: "MARK" },
  ...more,
});
const found = { type: "search_result", source: "SOURCE", title: "TITLE", content: [text("FOUND")] };
const tool = { name: "f", input_schema: { type: "object", properties: { MARK: {} } } };
const withTool = (more: object) => ({ tools: [tool], ...more });
const result = (more: object) =>
  says(
    user(text("a")),
    assistant(
      { type: "tool_use", id: "c1", name: "f", input: { MARK: 1 } },
      { type: "tool_use", id: "c2", name: "f", input: {} },
    ),
    user({ type: "tool_result", tool_use_id: "c1", ...more }),
  );
const thinking = (more: object) =>
  says(user(text("a")), assistant({ type: "thinking", thinking: "MARK", ...more }, text("b")), user(text("c")));
const changes = (type: string, by: string, more: object) => ({
  role: "system",
  content: [{ type, tool: { type: by, ...more } }],
});
const marked = { cache_control: { type: "ephemeral", ttl: "MARK" } };
const hosted = { type: "web_search_20250305", name: "web_search" };

export const messagesProbes: Record<string, Probe> = {
  "`system`": [
    [
      { system: "MARK" },
      /"role":"system","content":"MARK"/,
      { messages: /"system":"MARK"/, responses: /"instructions":"MARK"/ },
    ],
  ],
  "billing line at the head of `system`": [[{ system: "x-anthropic-billing-header: MARK\nBe brief." }, /MARK/]],
  text: [
    [says(user(text("MARK"))), /MARK/],
    [says({ role: "user", content: "MARK" }, assistant(text("b")), user(text("c"))), /MARK/],
  ],
  "`role: system` inside `messages`": [
    [says(user(text("a")), { role: "system", content: "MARK" }), /"role":"system","content":.*MARK/],
    [says(user(text("a")), { role: "system", content: [text("MARK")] }), /"role":"system","content":.*MARK/],
  ],
  "`clear_at` of such a message": [
    [says(user(text("a")), { role: "system", content: "MARK", clear_at: "next_user_message" }), /MARK/],
    [
      says(
        user(text("a")),
        { role: "system", content: "MARK", clear_at: "next_user_message" },
        assistant(text("b")),
        user(text("LATER")),
      ),
      /^(?!.*MARK).*LATER/,
    ],
  ],
  "`output_config.effort` of such a message": [
    [
      {
        output_config: { effort: "high" },
        ...says({ role: "system", output_config: { effort: "low" } }, user(text("a"))),
      },
      /"(reasoning_)?effort":"low"/,
    ],
  ],
  "image, base64 or URL": [
    [says(user(image)), /iVBORw0KGgo/],
    [says(user({ type: "image", source: { type: "url", url: "https://MARK" } })), /MARK/],
  ],
  "image or document by `file_id`": [
    [says(user({ type: "image", source: { type: "file", file_id: "x" } })), "messages[0].content[0].source.type"],
    [says(user({ type: "document", source: { type: "file", file_id: "x" } })), "messages[0].content[0].source.type"],
  ],
  "document of text or of blocks": [
    [says(user(plain())), /MARK/],
    [
      says(user({ type: "document", source: { type: "content", content: [text("MARK"), image] } })),
      /MARK.*iVBORw0KGgo/,
    ],
  ],
  "document `title` and `context`": [
    [says(user(plain({ title: "TITLE", context: "CONTEXT" }))), /TITLE.*CONTEXT/],
    [says(user({ ...pdf, title: "TITLE" })), /TITLE/],
  ],
  "document, PDF": [[says(user(pdf)), /JVBERi0x/]],
  "document by URL": [
    [says(user({ type: "document", source: { type: "url", url: "https://x" } })), "messages[0].content[0].source.type"],
  ],
  "document `citations` enabled": [
    [
      says(user(plain({ citations: { enabled: true } }))),
      "messages[0].content[0].citations",
      { messages: /"citations":{"enabled":true}/ },
    ],
  ],
  "`search_result`": [
    [says(user(found)), /FOUND/],
    [result({ content: [found] }), /FOUND/],
  ],
  "`tool_use`, several in one message": [[result({ content: "x" }), /c1.*MARK.*c2/]],
  "`tool_result`": [
    [result({ content: "RESULT" }), /RESULT/],
    [result({ content: [text("RESULT")] }), /RESULT/],
  ],
  "`tool_result` with an image or a PDF": [
    [result({ content: [image] }), /iVBORw0KGgo/],
    [result({ content: [pdf] }), /JVBERi0x/],
  ],
  "`tool_result` with `tool_reference`": [
    [result({ content: [{ type: "tool_reference", tool_name: "FOUND" }] }), /FOUND/],
  ],
  "`tool_result` with `is_error`": [
    [result({ content: "RESULT", is_error: true }), /Error: RESULT/, { messages: /"is_error":true/ }],
  ],
  "`thinking` text, signed": [[thinking({ signature: "s" }), /MARK/]],
  "`thinking` signature": [[thinking({ signature: "SIGNATURE" }), /:"SIGNATURE"/]],
  "`thinking` that no engine signed": [
    [thinking({ signature: unsigned }), /MARK/],
    [thinking({}), /MARK/],
  ],
  "`redacted_thinking`": [
    [
      says(user(text("a")), assistant({ type: "redacted_thinking", data: "MARK" }, text("b")), user(text("c"))),
      /:"MARK"/,
    ],
  ],
  "`cache_control`": [
    [says(user(text("a", marked))), /MARK/],
    [{ tools: [{ name: "f", input_schema: {}, ...marked }] }, /MARK/],
    [{ system: [text("a", marked)] }, /MARK/],
    [marked, /MARK/],
  ],
  "`citations` of a replayed text": [
    [says(user(text("a")), assistant(text("b", { citations: [{ cited_text: "MARK" }] })), user(text("c"))), /MARK/],
  ],
  "a last assistant message, to be continued": [
    [says(user(text("a")), assistant(text("MARK"))), "messages[1]", { messages: /MARK/ }],
  ],
  "blocks of hosted tools, uploads, compaction": [
    "server_tool_use",
    "web_search_tool_result",
    "mcp_tool_use",
    "container_upload",
    "compaction",
  ].map((type) => [says(user(text("a")), assistant({ type })), "messages[1].content[0].type"]),
  "`tools` of the client, with `strict`": [
    [{ tools: [{ ...tool, description: "WORDS", strict: true }] }, /(?=.*MARK)(?=.*WORDS)(?=.*"strict":true)/],
    [{ tools: [{ ...tool, type: "custom" }] }, /MARK/],
  ],
  "`defer_loading`": [[{ tools: [{ ...tool, defer_loading: true }] }, /defer_loading|^(?!.*"name":"f")/]],
  "`DeferredToolPlaceholder`": [
    [{ tools: [tool, { name: "DeferredToolPlaceholder", input_schema: {}, defer_loading: true }] }, /Placeholder/],
  ],
  "`input_examples`, `eager_input_streaming`": [
    [{ tools: [{ ...tool, input_examples: [{ x: "EXAMPLE" }] }] }, /EXAMPLE/],
    [{ tools: [{ ...tool, eager_input_streaming: true }] }, /eager_input_streaming/],
  ],
  "hosted tools, listed beside others": [[{ tools: [tool, hosted] }, /web_search/]],
  "hosted tools, asked for or alone": [
    [{ tools: [hosted] }, "tools[0].type"],
    [{ tools: [tool, hosted], tool_choice: { type: "tool", name: "web_search" } }, "tool_choice.name"],
  ],
  "`bash_*`, `text_editor_*`, `memory_*` tools": Object.entries(publishedTools).map(([type, { name }]) => [
    { tools: [tool, { type, name }] },
    new RegExp(`"name":"${name}".*"command"`),
  ]),
  "`computer_*` and `browser_*` tools": [
    "computer_20251124",
    "computer_toolset_20260801",
    "browser_toolset_20260801",
  ].map((type) => [{ tools: [tool, { type, name: "x" }] }, "tools[1].type"]),
  "`tool_addition`, `tool_removal` in a system message": [
    [
      {
        ...says(user(text("a")), changes("tool_addition", "tool_definition", { definition: { ...tool, name: "NEW" } })),
      },
      /"NEW"/,
    ],
    [
      {
        tools: [tool, { ...tool, name: "KEPT" }],
        ...says(user(text("a")), changes("tool_removal", "tool_reference", { name: "f" })),
      },
      /^(?!.*"name":"f").*"name":"KEPT"/,
    ],
  ],
  "`tool_addition`, `tool_removal` elsewhere": ["tool_addition", "tool_removal"].map((type) => [
    { tools: [tool], ...says(user({ type, tool: { type: "tool_reference", name: "f" } })) },
    "messages[0].content[0].type",
  ]),
  "`tool_choice`": [
    [withTool({ tool_choice: { type: "any" } }), /"tool_choice":("required"|{"type":"any"})/],
    [
      withTool({ tool_choice: { type: "tool", name: "f" } }),
      /"tool_choice":"required","parallel_tool_calls":false/,
      { messages: /"tool_choice":{"type":"tool","name":"f"/ },
    ],
    [withTool({ tool_choice: { type: "none" } }), /"tool_choice":("none"|{"type":"none"})/],
  ],
  "`disable_parallel_tool_use`": [
    [
      withTool({ tool_choice: { type: "auto", disable_parallel_tool_use: true } }),
      /"parallel_tool_calls":false/,
      { messages: /"disable_parallel_tool_use":true/ },
    ],
  ],
  "`max_tokens`": [[{ max_tokens: 77 }, /"max_(output_)?tokens":77/]],
  "`max_tokens: 0`": [[{ max_tokens: 0 }, "max_tokens"]],
  "`stop_sequences`": [[{ stop_sequences: ["MARK"] }, /\["MARK"\]/, { responses: "stop_sequences" }]],
  "`temperature`, `top_p`": [[{ temperature: 0.25, top_p: 0.5 }, /"temperature":0.25,"top_p":0.5/]],
  "`top_k`": [[{ top_k: 3 }, /"top_k":3/, { responses: "top_k" }]],
  "`thinking` type and budget": [
    [
      { thinking: { type: "enabled", budget_tokens: 20 } },
      /"reasoning_effort":"low"/,
      { messages: /"budget_tokens":20/, responses: /"reasoning":{"effort":"low"}/ },
    ],
    [
      { thinking: { type: "disabled" } },
      /"reasoning_effort":"none"/,
      { messages: /"type":"disabled"/, responses: /"reasoning":{"effort":"none"}/ },
    ],
  ],
  "`thinking.display`": ["adaptive", "between_tools"].map((type) => [
    { thinking: { type, display: "omitted" } },
    new RegExp(`${type}.*omitted`),
  ]),
  "`output_config.effort`": [
    [
      { output_config: { effort: "max" } },
      /"reasoning_effort":"high"/,
      { messages: /"effort":"max"/, responses: /"reasoning":{"effort":"high"}/ },
    ],
  ],
  "`output_config.format`, `output_format`": [
    [{ output_config: { format: { type: "json_schema", schema: { MARK: 1 } } } }, /MARK/],
    [{ output_format: { type: "json_schema", schema: { MARK: 1 } } }, /MARK/],
  ],
  "`metadata.user_id`": [[{ metadata: { user_id: "MARK" } }, /MARK/]],
  "`context_management`, clearing thinking": [
    [{ context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] } }, /clear_thinking/],
  ],
  "`context_management`, any other edit": [
    [{ context_management: { edits: [{ type: "clear_tool_uses_20250919" }] } }, "context_management.edits[0].type"],
    [{ context_management: { edits: [{ type: "compact_20260112" }] } }, "context_management.edits[0].type"],
  ],
  "`mcp_servers`": [[{ mcp_servers: [{ name: "x" }] }, "mcp_servers"]],
  "`container`": [[{ container: "x" }, "container"]],
  "`compaction`": [[{ compaction: {} }, "compaction"]],
  "`thread`": [[{ thread: { type: "create" } }, "thread"]],
  "any other key": [
    [
      { service_tier: "MARK", speed: "MARK", betas: ["MARK"], something: { MARK: 1 }, cache_control: null },
      /MARK|null/,
    ],
  ],
};
