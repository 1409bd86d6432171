/** docs/protocols.md against the code: every row is tried on both kinds of engine, or both kinds of client. */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { Fault } from "../../src/inference/fault.ts";
import { folding } from "../../src/inference/result.ts";
import { anthropicMessagesCaller, anthropicMessagesUpstream } from "../../src/protocol/anthropic-messages/codec.ts";
import { unsigned } from "../../src/protocol/anthropic-messages/signature.ts";
import { validateMessagesRequest } from "../../src/protocol/anthropic-messages/validate.ts";
import { openaiChatCaller, openaiChatUpstream } from "../../src/protocol/openai-chat/codec.ts";
import type { ChatCompletionRequest } from "../../src/protocol/openai-chat/contract.ts";
import { validateChatRequest } from "../../src/protocol/openai-chat/validate.ts";

type Verdict = "carried" | "refused" | "left out";
const document = await Bun.file(join(import.meta.dir, "../../docs/protocols.md")).text();

/** The rows of the table under a heading: what → its two verdicts. */
function table(heading: string): Map<string, [string, string]> {
  const section = document.split(`\n## ${heading}\n`)[1]?.split("\n## ")[0] ?? "";
  const rows = section
    .split("\n")
    .filter((line) => line.startsWith("|"))
    .slice(2);
  return new Map(
    rows.map((row) => row.split("|").map((cell) => cell.trim())).map(([, what, one, other]) => [what!, [one!, other!]]),
  );
}

/** Bodies that ask for it, each with what must be seen of it at the engine where it is carried. */
type Probe = [body: object, seen: RegExp, seenByMessages?: RegExp][];

function judge(act: () => unknown, seen: RegExp): Verdict {
  try {
    return seen.test(JSON.stringify(act())) ? "carried" : "left out";
  } catch (thrown) {
    if (!(thrown instanceof Fault) || thrown.code !== "unsupported_feature") throw thrown;
    expect(thrown.details.param).toBeDefined();
    return "refused";
  }
}

const user = (...content: unknown[]) => ({ role: "user", content });
const assistant = (...content: unknown[]) => ({ role: "assistant", content });
const says = (...messages: unknown[]) => ({ messages });
const text = (text: string, more: object = {}) => ({ type: "text", text, ...more });
const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const image = { type: "image", source: { type: "base64", media_type: "image/png", data: png } };
const pdf = { type: "document", source: { type: "base64", media_type: "application/pdf", data: "JVBERi0x" } };
const plain = (more: object = {}) => ({
  type: "document",
  source: { type: "text", media_type: "text/plain", data: "MARK" },
  ...more,
});
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
const marked = { cache_control: { type: "ephemeral", ttl: "MARK" } };
const hosted = { type: "web_search_20250305", name: "web_search" };

const messagesProbes: Record<string, Probe> = {
  "`system`": [[{ system: "MARK" }, /"system".*MARK|MARK.*"system"/]],
  "billing line at the head of `system`": [[{ system: "x-anthropic-billing-header: MARK\nBe brief." }, /MARK/]],
  text: [
    [says(user(text("MARK"))), /MARK/],
    [says({ role: "user", content: "MARK" }, assistant(text("b")), user(text("c"))), /MARK/],
  ],
  "`role: system` inside `messages`": [
    [says(user(text("a")), { role: "system", content: "MARK" }), /"role":"system","content":.*MARK/],
  ],
  "image, base64 or URL": [
    [says(user(image)), /iVBORw0KGgo/],
    [says(user({ type: "image", source: { type: "url", url: "https://MARK" } })), /MARK/],
  ],
  "image or document by `file_id`": [
    [says(user({ type: "image", source: { type: "file", file_id: "MARK" } })), /MARK/],
    [says(user({ type: "document", source: { type: "file", file_id: "MARK" } })), /MARK/],
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
  "document by URL": [[says(user({ type: "document", source: { type: "url", url: "https://MARK" } })), /MARK/]],
  "document `citations` enabled": [
    [says(user(plain({ citations: { enabled: true } }))), /"citations":{"enabled":true}/],
  ],
  "`search_result`": [
    [says(user({ type: "search_result", source: "SOURCE", title: "TITLE", content: [text("MARK")] })), /MARK/],
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
    [result({ content: "RESULT", is_error: true }), /Error: RESULT/, /"is_error":true/],
  ],
  "`thinking` text, signed": [[thinking({ signature: "s" }), /MARK/]],
  "`thinking` signature": [[thinking({ signature: "SIGNATURE" }), /SIGNATURE/]],
  "`thinking` that no engine signed": [
    [thinking({ signature: unsigned }), /MARK/],
    [thinking({}), /MARK/],
  ],
  "`redacted_thinking`": [
    [says(user(text("a")), assistant({ type: "redacted_thinking", data: "MARK" }, text("b")), user(text("c"))), /MARK/],
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
  "a last assistant message, to be continued": [[says(user(text("a")), assistant(text("MARK"))), /MARK/]],
  "blocks of hosted tools, uploads, compaction": [
    "server_tool_use",
    "web_search_tool_result",
    "mcp_tool_use",
    "container_upload",
    "compaction",
  ].map((type) => [says(user(text("a")), assistant({ type, MARK: 1 })), /MARK/]),
  "`tools` of the client, with `strict`": [
    [{ tools: [{ ...tool, description: "WORDS", strict: true }] }, /(?=.*MARK)(?=.*WORDS)(?=.*"strict":true)/],
  ],
  "`defer_loading`": [[{ tools: [{ ...tool, defer_loading: true }] }, /defer_loading/]],
  "`DeferredToolPlaceholder`": [
    [{ tools: [tool, { name: "DeferredToolPlaceholder", input_schema: {}, defer_loading: true }] }, /Placeholder/],
  ],
  "`input_examples`, `eager_input_streaming`": [
    [{ tools: [{ ...tool, input_examples: [{ x: "EXAMPLE" }] }] }, /EXAMPLE/],
    [{ tools: [{ ...tool, eager_input_streaming: true }] }, /eager_input_streaming/],
  ],
  "hosted tools, listed beside others": [[{ tools: [tool, hosted] }, /web_search/]],
  "hosted tools, asked for or alone": [
    [{ tools: [hosted] }, /web_search/],
    [{ tools: [tool, hosted], tool_choice: { type: "tool", name: "web_search" } }, /web_search/],
  ],
  "`bash_*`, `text_editor_*`, `memory_*`, `computer_*` tools": [
    "bash_20250124",
    "text_editor_20250728",
    "memory_20250818",
    "computer_20251124",
  ].map((type) => [{ tools: [tool, { type, name: "NAMED" }] }, /NAMED/]),
  "`tool_choice`": [
    [withTool({ tool_choice: { type: "any" } }), /"tool_choice":("required"|{"type":"any"})/],
    [
      withTool({ tool_choice: { type: "tool", name: "f" } }),
      /"tool_choice":"required","parallel_tool_calls":false/,
      /"tool_choice":{"type":"tool","name":"f"/,
    ],
    [withTool({ tool_choice: { type: "none" } }), /"tool_choice":("none"|{"type":"none"})/],
  ],
  "`disable_parallel_tool_use`": [
    [
      withTool({ tool_choice: { type: "auto", disable_parallel_tool_use: true } }),
      /"parallel_tool_calls":false/,
      /"disable_parallel_tool_use":true/,
    ],
  ],
  "`max_tokens`": [[{ max_tokens: 77 }, /"max_tokens":77/]],
  "`max_tokens: 0`": [[{ max_tokens: 0 }, /"max_tokens":0/]],
  "`stop_sequences`": [[{ stop_sequences: ["MARK"] }, /\["MARK"\]/]],
  "`temperature`, `top_p`, `top_k`": [
    [{ temperature: 0.25, top_p: 0.5, top_k: 3 }, /"temperature":0.25,"top_p":0.5,"top_k":3/],
  ],
  "`thinking` type and budget": [
    [{ thinking: { type: "enabled", budget_tokens: 20 } }, /"reasoning_effort":"low"/, /"budget_tokens":20/],
    [{ thinking: { type: "disabled" } }, /"reasoning_effort":"none"/, /"type":"disabled"/],
  ],
  "`thinking.display`": [[{ thinking: { type: "adaptive", display: "omitted" } }, /omitted/]],
  "`output_config.effort`": [[{ output_config: { effort: "max" } }, /"reasoning_effort":"high"/, /"effort":"max"/]],
  "`output_config.format`, `output_format`": [
    [{ output_config: { format: { type: "json_schema", schema: { MARK: 1 } } } }, /MARK/],
    [{ output_format: { type: "json_schema", schema: { MARK: 1 } } }, /MARK/],
  ],
  "`metadata.user_id`": [[{ metadata: { user_id: "MARK" } }, /MARK/]],
  "`context_management`, clearing thinking": [
    [{ context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] } }, /clear_thinking/],
  ],
  "`context_management`, any other edit": [
    [{ context_management: { edits: [{ type: "clear_tool_uses_20250919" }] } }, /clear_tool_uses/],
    [{ context_management: { edits: [{ type: "compact_20260112" }] } }, /compact/],
  ],
  "`mcp_servers`": [[{ mcp_servers: [{ name: "MARK" }] }, /MARK/]],
  "`container`": [[{ container: "MARK" }, /MARK/]],
  "`compaction`": [[{ compaction: { x: "MARK" } }, /MARK/]],
  "`thread`": [[{ thread: { type: "create" } }, /thread/]],
  "any other key": [[{ service_tier: "MARK", speed: "MARK", betas: ["MARK"], something: { MARK: 1 } }, /MARK/]],
};

const called = { id: "c1", type: "function", function: { name: "f", arguments: '{"MARK":1}' } };
const chatTool = {
  type: "function",
  function: { name: "f", description: "WORDS", parameters: { type: "object", properties: { MARK: {} } } },
};
const history = (message: object) =>
  says({ role: "user", content: "a" }, { role: "assistant", content: "b", ...message }, { role: "user", content: "c" });
const schema = { name: "NAMED", description: "WORDS", schema: { MARK: 1 } };

const chatProbes: Record<string, Probe> = {
  "`system` and `developer` messages": [
    [says({ role: "system", content: "MARK" }, user(text("a"))), /MARK/],
    [says(user(text("a")), { role: "developer", content: "MARK" }), /MARK/],
  ],
  text: [[says({ role: "user", content: "MARK" }), /MARK/]],
  "`name` of a message": [[says({ role: "user", name: "MARK", content: "a" }), /MARK/]],
  "`image_url`": [
    [says(user({ type: "image_url", image_url: { url: "https://MARK" } })), /MARK/],
    [says(user({ type: "image_url", image_url: { url: `data:image/png;base64,${png}` } })), /iVBORw0KGgo/],
  ],
  "`image_url.detail`": [[says(user({ type: "image_url", image_url: { url: "https://a", detail: "low" } })), /"low"/]],
  "`input_audio`": [[says(user({ type: "input_audio", input_audio: { data: "MARK", format: "wav" } })), /MARK/]],
  "`file`, PDF or plain text": [
    [says(user({ type: "file", file: { file_data: "JVBERi0x" } })), /JVBERi0x/],
    [says(user({ type: "file", file: { file_data: "data:text/plain;base64,TUFSSw==" } })), /TUFSSw==/, /"data":"MARK"/],
  ],
  "`file` of another kind": [
    [says(user({ type: "file", file: { file_data: "data:text/csv;base64,TUFSSw==" } })), /TUFSSw==/],
  ],
  "`refusal` in the history": [[history({ refusal: "MARK" }), /MARK/]],
  "`reasoning_content` in the history": [[history({ reasoning_content: "MARK" }), /MARK/]],
  "`tool_calls` and `tool` messages": [
    [
      says(
        user(text("a")),
        { role: "assistant", tool_calls: [called] },
        { role: "tool", tool_call_id: "c1", content: "RESULT" },
      ),
      /MARK.*RESULT/,
    ],
  ],
  "`tools`": [[{ tools: [chatTool] }, /(?=.*MARK)(?=.*WORDS)/]],
  "`tool_choice`, `allowed_tools` too": [
    [{ tools: [chatTool], tool_choice: "required" }, /"tool_choice":("required"|{"type":"any"})/],
    [
      { tools: [chatTool], tool_choice: { type: "function", function: { name: "f" } } },
      /"tool_choice":"required","parallel_tool_calls":false/,
      /"tool_choice":{"type":"tool","name":"f"/,
    ],
    [
      {
        tools: [chatTool],
        tool_choice: {
          type: "allowed_tools",
          allowed_tools: { mode: "required", tools: [{ type: "function", function: { name: "f" } }] },
        },
      },
      /"tool_choice":("required"|{"type":"any"})/,
    ],
  ],
  "`parallel_tool_calls: false`": [
    [
      { tools: [chatTool], parallel_tool_calls: false },
      /"parallel_tool_calls":false/,
      /"disable_parallel_tool_use":true/,
    ],
  ],
  "`max_tokens`, `max_completion_tokens`": [
    [{ max_tokens: 77 }, /"max_tokens":77/],
    [{ max_completion_tokens: 77 }, /"max_tokens":77/],
  ],
  "`temperature` up to 1, `top_p`": [[{ temperature: 1, top_p: 0.5 }, /"temperature":1,"top_p":0.5/]],
  "`temperature` above 1": [[{ temperature: 1.5 }, /1.5/]],
  "`frequency_penalty`, `presence_penalty`": [
    [{ frequency_penalty: 1.5 }, /1.5/],
    [{ presence_penalty: 1.5 }, /1.5/],
  ],
  "`logit_bias`": [[{ logit_bias: { "77": 1 } }, /"77"/]],
  "`logprobs`": [[{ logprobs: true, top_logprobs: 3 }, /"top_logprobs":3/]],
  "`seed`": [[{ seed: 77 }, /77/]],
  "`stop`": [[{ stop: "MARK" }, /\["MARK"\]/]],
  "`response_format`, `json_schema`": [[{ response_format: { type: "json_schema", json_schema: schema } }, /MARK/]],
  "name and description of a schema": [
    [{ response_format: { type: "json_schema", json_schema: schema } }, /NAMED.*WORDS/],
  ],
  "`response_format`, `json_object`": [[{ response_format: { type: "json_object" } }, /json_object/]],
  "`reasoning_effort`": [
    [{ reasoning_effort: "low" }, /"(reasoning_)?effort":"low"/],
    [{ reasoning_effort: "none" }, /"reasoning_effort":"none"/, /"type":"disabled"/],
  ],
  "`extra_params` of the model": [[{ mirostat: "MARK" }, /MARK/]],
  "`prompt_cache_key`": [[{ prompt_cache_key: "MARK" }, /MARK/]],
  "`user`, `metadata`, `service_tier`, `prediction` …": [
    [
      {
        user: "MARK",
        metadata: { a: "MARK" },
        service_tier: "MARK",
        prediction: { type: "content", content: "MARK" },
        safety_identifier: "MARK",
        verbosity: "low",
      },
      /MARK|verbosity/,
    ],
  ],
  "`n` other than 1, `audio`, `functions`, `web_search_options`": [
    { n: 2 },
    { audio: {} },
    { functions: [] },
    { web_search_options: {} },
  ].map((body) => [body, /x/]),
};

const ask = { model: "engine", stream: true, outputTokensMax: 4096 };
const upstreams = [openaiChatUpstream, anthropicMessagesUpstream];

describe.each([
  [
    "Requests of Messages clients",
    messagesProbes,
    (body: object) =>
      anthropicMessagesCaller().request.decode(
        validateMessagesRequest({ model: "a/b", max_tokens: 100, ...says(user(text("Hello"))), ...body }),
      ),
  ],
  [
    "Requests of chat clients",
    chatProbes,
    (body: object) =>
      openaiChatCaller.request.decode(
        validateChatRequest({ model: "a/b", ...says(user(text("Hello"))), ...body }, ["mirostat"]),
      ),
  ],
] as const)("%s", (heading, probes, decode) => {
  const rows = table(heading);
  test("each row has its trial, and each trial its row", () => expect([...rows.keys()]).toEqual(Object.keys(probes)));
  for (const [what, probe] of Object.entries(probes as Record<string, Probe>))
    test(what, () => {
      for (const [body, seen, seenByMessages = seen] of probe) {
        const verdicts = upstreams.map((upstream, at) =>
          judge(() => upstream.request.encode(decode(body), ask), at === 0 ? seen : seenByMessages),
        );
        expect(verdicts).toEqual(rows.get(what) as Verdict[]);
      }
    });
});

const identity = { responseId: `msg_${"0".repeat(32)}`, createdAtSeconds: 1, model: "a/b" };
const chatAnswer = (message: object, more: object = {}) => ({
  choices: [{ index: 0, message: { role: "assistant", content: null, ...message }, finish_reason: "stop", ...more }],
});
const message = (...content: unknown[]) => ({
  type: "message",
  content,
  stop_reason: "end_turn",
  stop_sequence: null,
  usage: { input_tokens: 1, output_tokens: 1 },
});

/** An engine's reply, and what is to be seen of it by a chat client and by a Messages client. */
type Answer = [reply: object, seen: RegExp, seenByMessages?: RegExp];
const chatAnswers: Record<string, Answer> = {
  text: [chatAnswer({ content: "MARK" }), /MARK/],
  "`reasoning_content`, `reasoning`": [
    chatAnswer({ reasoning: "MARK" }),
    /"reasoning_content":"MARK"/,
    /"thinking":"MARK"/,
  ],
  "`refusal`": [chatAnswer({ refusal: "MARK" }), /"refusal":"MARK"/, /"text":"MARK".*"stop_reason":"refusal"/],
  "`tool_calls`": [
    chatAnswer({ tool_calls: [{ id: "c1", function: { name: "f", arguments: '{"MARK":1}' } }] }),
    /c1.*MARK/,
  ],
  "`logprobs`": [
    chatAnswer(
      { content: "a" },
      { logprobs: { content: [{ token: "MARK", logprob: -1, bytes: null, top_logprobs: [] }] } },
    ),
    /MARK/,
  ],
  "the stop sequence that matched": [chatAnswer({ content: "a" }, { stop_reason: "END" }), /END/],
  "cached and reasoning tokens": [
    {
      ...chatAnswer({ content: "a" }),
      usage: {
        prompt_tokens: 90,
        completion_tokens: 8,
        prompt_tokens_details: { cached_tokens: 77 },
        completion_tokens_details: { reasoning_tokens: 6 },
      },
    },
    /"prompt_tokens":90.*"cached_tokens":77.*"reasoning_tokens":6/,
    /"input_tokens":13.*"cache_read_input_tokens":77.*"thinking_tokens":6/,
  ],
};
const messagesAnswers: Record<string, Answer> = {
  text: [message(text("MARK")), /MARK/],
  "`thinking`": [
    message({ type: "thinking", thinking: "MARK", signature: "s" }),
    /"reasoning_content":"MARK"/,
    /"thinking":"MARK"/,
  ],
  "`signature` of thinking": [message({ type: "thinking", thinking: "a", signature: "MARK" }), /MARK/],
  "`redacted_thinking`": [message({ type: "redacted_thinking", data: "MARK" }), /MARK/],
  "`tool_use`": [message({ type: "tool_use", id: "c1", name: "f", input: { MARK: 1 } }), /c1.*MARK/],
  "`citations`": [message(text("a", { citations: [{ cited_text: "MARK" }] })), /MARK/],
  "`stop_sequence`": [{ ...message(text("a")), stop_reason: "stop_sequence", stop_sequence: "END" }, /END/],
  "tokens read from and written to a cache": [
    {
      ...message(text("a")),
      usage: { input_tokens: 2, cache_read_input_tokens: 77, cache_creation_input_tokens: 11, output_tokens: 1 },
    },
    /"prompt_tokens":90.*"cached_tokens":77,"cache_write_tokens":11/,
    /"input_tokens":2,"cache_creation_input_tokens":11,"cache_read_input_tokens":77/,
  ],
  "blocks of hosted tools, `stop_details`, `container`": [
    {
      ...message(text("a"), { type: "server_tool_use", id: "MARK", name: "web_search", input: {} }),
      stop_details: { explanation: "MARK" },
      container: { id: "MARK" },
    },
    /MARK/,
  ],
};

describe.each([
  ["Answers of chat engines", chatAnswers, openaiChatUpstream],
  ["Answers of Messages engines", messagesAnswers, anthropicMessagesUpstream],
] as const)("%s", (heading, answers, upstream) => {
  const rows = table(heading);
  const asChat = { model: "a/b", messages: [], logprobs: true } as unknown as ChatCompletionRequest;
  const asMessages = validateMessagesRequest({
    model: "a/b",
    max_tokens: 1,
    ...says(user(text("a"))),
    stop_sequences: ["END"],
  });
  test("each row has its trial, and each trial its row", () => expect([...rows.keys()]).toEqual(Object.keys(answers)));
  for (const [what, [reply, seen, seenByMessages = seen]] of Object.entries(answers as Record<string, Answer>))
    test(what, () => {
      const fold = folding();
      for (const event of upstream.response.decode(reply, identity)) fold.push(event);
      const verdicts = [
        judge(() => openaiChatCaller.response.encode(fold.result(), asChat), seen),
        judge(() => anthropicMessagesCaller().response.encode(fold.result(), asMessages), seenByMessages),
      ];
      expect(verdicts).toEqual(rows.get(what) as Verdict[]);
    });
});
