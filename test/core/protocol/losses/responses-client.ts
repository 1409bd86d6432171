/** Requests of Responses clients, row by row of docs/protocols.md, and the content that each engine must see. */
import { seal } from "../../../../src/core/protocol/openai-responses/sealed.ts";
import { type Probe, png } from "./probe.ts";

const message = (role: string, ...content: unknown[]) => ({ type: "message", role, content });
const asked = (text: string) => message("user", { type: "input_text", text });
const input = (...items: unknown[]) => ({ input: items });
const shown = (...content: unknown[]) => input(message("user", ...content));
const image = { type: "input_image", image_url: `data:image/png;base64,${png}` };
const file = (more: object) => shown({ type: "input_file", ...more });
const answered = (item: object) => input(asked("a"), item, asked("b"));
const update = (settings: object) => ({ type: "configuration_update", ...settings });
const thought = (more: object) => answered({ type: "reasoning", summary: [], ...more });

const tool = { type: "function", name: "f", parameters: { type: "object", properties: { MARK: {} } } };
const custom = { type: "custom", name: "patch", format: { type: "grammar", syntax: "lark", definition: "GRAMMAR" } };
const namespace = { type: "namespace", name: "space", tools: [tool] };
const hosted = { type: "web_search" };
const call = (call_id: string, written: string) => ({
  type: "function_call",
  call_id,
  name: "f",
  arguments: written,
});
const result = (output: unknown) =>
  input(
    asked("a"),
    call("c1", '{"MARK":1}'),
    call("c2", "{}"),
    { type: "function_call_output", call_id: "c1", output },
    { type: "function_call_output", call_id: "c2", output: "x" },
  );
const format = (more: object) => ({ text: { format: { name: "NAMED", description: "WORDS", schema: {}, ...more } } });

export const responsesProbes: Record<string, Probe> = {
  "`instructions`": [
    [
      { instructions: "MARK" },
      /"role":"system","content":"MARK"/,
      { messages: /"system":"MARK"/, responses: /"instructions":"MARK"/ },
    ],
  ],
  "`input` as a string": [[{ input: "MARK" }, /"role":"user","content":.*MARK/]],
  "text of user and assistant": [
    [input(asked("MARK")), /MARK/],
    [input(asked("a"), { role: "assistant", content: "MARK" }, asked("b")), /"role":"assistant","content":.*MARK/],
    [answered(message("assistant", { type: "output_text", text: "MARK" })), /"role":"assistant","content":.*MARK/],
  ],
  "`system` and `developer` messages": [
    [input(message("developer", { type: "input_text", text: "MARK" }), asked("a")), /MARK/],
    [input(asked("a"), { role: "system", content: "MARK" }), /"role":"system","content":.*MARK/],
  ],
  "`input_image`, data or URL": [
    [shown(image), /iVBORw0KGgo/],
    [shown({ type: "input_image", image_url: "https://MARK" }), /MARK/],
  ],
  "`input_image.detail`": [[shown({ ...image, detail: "low" }), /"detail":"low"/]],
  "`file_id`, `file_url`": [
    [shown({ type: "input_image", file_id: "x" }), "input[0].content[0].file_id"],
    [file({ file_id: "x" }), "input[0].content[0].file_id"],
    [file({ file_url: "https://x" }), "input[0].content[0].file_url"],
  ],
  "`input_file`, PDF or plain text": [
    [file({ file_data: "JVBERi0x", filename: "TITLE" }), /(?=.*JVBERi0x)(?=.*TITLE)/],
    [file({ file_data: "data:text/plain;base64,TUFSSw==" }), /TUFSSw==/, { messages: /"data":"MARK"/ }],
  ],
  "`input_file` of another kind": [
    [file({ file_data: "data:text/csv;base64,TUFSSw==" }), /TUFSSw==/, { messages: "input[0].content[0]" }],
  ],
  "`refusal` in the history": [[answered(message("assistant", { type: "refusal", refusal: "MARK" })), /MARK/]],
  "`function_call`, several in a row": [[result("x"), /c1.*MARK.*c2/]],
  "`function_call_output`": [
    [result("RESULT"), /RESULT/],
    [result([{ type: "input_text", text: "RESULT" }]), /RESULT/],
  ],
  "`function_call_output` with an image or a PDF": [
    [result([image]), /iVBORw0KGgo/],
    [result([{ type: "input_file", file_data: "JVBERi0x" }]), /JVBERi0x/],
  ],
  "`custom_tool_call` and its output": [
    [
      {
        tools: [custom],
        ...input(
          asked("a"),
          { type: "custom_tool_call", call_id: "c1", name: "patch", input: "MARK" },
          { type: "custom_tool_call_output", call_id: "c1", output: "RESULT" },
        ),
      },
      /\{\\"input\\":\\"MARK\\"\}.*RESULT/,
      { messages: /"input":\{"input":"MARK"\}.*RESULT/, responses: /"custom_tool_call".*"input":"MARK".*RESULT/ },
    ],
  ],
  "`reasoning` in the clear": [
    [thought({ content: [{ type: "reasoning_text", text: "MARK" }] }), /MARK/],
    [thought({ summary: [{ type: "summary_text", text: "MARK" }] }), /MARK/],
  ],
  "`encrypted_content`: its text": [
    [thought({ encrypted_content: seal("a/b", "MARK", { signature: "s" }) }), /"[a-z_]+":"MARK"/],
  ],
  "`encrypted_content`: an engine's proof": [
    [thought({ encrypted_content: seal("a/b", "t", { signature: "PROOF" }) }), /"[a-z_]+":"PROOF"/],
    [thought({ encrypted_content: seal("a/b", "", { encrypted: "PROOF" }) }), /"[a-z_]+":"PROOF"/],
  ],
  "`encrypted_content` of another model": [
    [thought({ encrypted_content: seal("a/other", "t", { signature: "PROOF" }) }), /PROOF/],
  ],
  "`encrypted_content` of another service": [[thought({ encrypted_content: "PROOF" }), /PROOF/]],
  "`previous_response_id`, `item_reference`": [
    [{ previous_response_id: "resp_1", input: "b" }, /STORED.*"b"/],
    [input({ type: "item_reference", id: "msg_1" }), /STORED/],
  ],
  "`additional_tools`": [[input({ type: "additional_tools", tools: [tool] }, asked("a")), /"name":"f".*MARK/]],
  "`id`, `status`, `phase` of an item": [[input({ ...asked("a"), id: "MARK", status: "MARK", phase: "MARK" }), /MARK/]],
  "`compaction`": [
    [input(asked("a"), { type: "compaction", encrypted_content: "compaction.1:MARK" }, asked("b")), /"a".*MARK.*"b"/],
  ],
  "`compaction_trigger`, as the last item": [
    [input(asked("MARK"), { type: "compaction_trigger" }), /MARK.*about to be replaced by what you write now/],
  ],
  "tools, forms and log probabilities beside a trigger": [
    [{ ...input(asked("a"), { type: "compaction_trigger" }), tools: [tool], tool_choice: "required" }, /MARK|required/],
    [
      { ...input(asked("a"), { type: "compaction_trigger" }), text: { format: { type: "json_object" } } },
      /json_object|output_config/,
    ],
    [{ ...input(asked("a"), { type: "compaction_trigger" }), top_logprobs: 7 }, /logprobs/],
  ],
  "items of hosted tools, of shells, of programs": [
    "web_search_call",
    "code_interpreter_call",
    "local_shell_call",
    "apply_patch_call",
    "mcp_call",
    "program",
    "program_output",
  ].map((type) => [input(asked("a"), { type }), "input[1].type"]),
  "`function` tools, with `strict`": [
    [{ tools: [{ ...tool, description: "WORDS", strict: true }] }, /(?=.*MARK)(?=.*WORDS)(?=.*"strict":true)/],
  ],
  "`namespace` tools": [
    [
      { tools: [namespace] },
      /"name":"space__f"/,
      { responses: /"type":"namespace","name":"space","tools":\[\{"type":"function","name":"f"/ },
    ],
    [{ tools: [{ ...namespace, tools: [custom] }] }, /"space(__|".*"name":")patch"/],
  ],
  "`custom` tools, with a grammar": [
    [
      { tools: [custom] },
      /"name":"patch","description":"[^"]*GRAMMAR/,
      { responses: /"type":"custom","name":"patch","format":\{"type":"grammar"/ },
    ],
  ],
  "`defer_loading`": [
    [{ tools: [{ ...tool, defer_loading: true }, { type: "tool_search" }] }, /defer_loading|^(?!.*"name":"f")/],
    [{ tools: [{ ...custom, defer_loading: true }] }, /defer_loading|^(?!.*"name":"patch")/],
    [{ tools: [{ ...namespace, tools: [{ ...tool, defer_loading: true }] }] }, /defer_loading|^(?!.*"(space__)?f")/],
  ],
  "hosted tools, listed beside others": [
    [{ tools: [tool, hosted] }, /web_search/],
    [{ tools: [hosted], ...input({ type: "additional_tools", tools: [tool] }, asked("a")) }, /web_search/],
  ],
  "hosted tools, asked for or alone": [
    [{ tools: [hosted] }, "tools[0].type"],
    [{ tools: [tool, hosted], tool_choice: { type: "web_search" } }, "tool_choice.type"],
    [
      { tools: [tool], tool_choice: { type: "allowed_tools", mode: "auto", tools: [{ type: "file_search" }] } },
      "tool_choice.tools[0].type",
    ],
  ],
  "`shell`, `local_shell`, `apply_patch`, `computer`, `programmatic_tool_calling` tools": [
    "shell",
    "local_shell",
    "apply_patch",
    "computer",
    "computer_use_preview",
    "programmatic_tool_calling",
  ].flatMap((type) => [
    [{ tools: [tool, { type }] }, "tools[1].type"],
    [{ tools: [tool], tool_choice: { type } }, "tool_choice.type"],
  ]),
  "`tool_choice`, `allowed_tools` too": [
    [{ tools: [tool], tool_choice: "required" }, /"tool_choice":("required"|\{"type":"any"\})/],
    [
      { tools: [tool, custom], tool_choice: { type: "custom", name: "patch" } },
      /"tool_choice":"required"/,
      { messages: /"tool_choice":\{"type":"tool","name":"patch"/ },
    ],
    [
      { tools: [tool], tool_choice: { type: "function", name: "f" } },
      /"tool_choice":"required","parallel_tool_calls":false/,
      { messages: /"tool_choice":\{"type":"tool","name":"f"/ },
    ],
    [
      {
        tools: [tool, custom],
        tool_choice: { type: "allowed_tools", mode: "required", tools: [{ type: "function", name: "f" }] },
      },
      /^(?!.*patch).*"tool_choice":("required"|\{"type":"any"\})/,
    ],
  ],
  "`parallel_tool_calls: false`": [
    [
      { tools: [tool], parallel_tool_calls: false },
      /"parallel_tool_calls":false/,
      { messages: /"disable_parallel_tool_use":true/ },
    ],
  ],
  "`max_output_tokens`": [[{ max_output_tokens: 77 }, /"max_(output_)?tokens":77/]],
  "`temperature` up to 1, `top_p`": [[{ temperature: 1, top_p: 0.5 }, /"temperature":1,"top_p":0.5/]],
  "`temperature` above 1": [[{ temperature: 1.5 }, /1.5/, { messages: "temperature" }]],
  "`top_logprobs`, `include: message.output_text.logprobs`": [
    [{ top_logprobs: 3 }, /"top_logprobs":3/, { messages: "top_logprobs" }],
    [
      { include: ["message.output_text.logprobs"] },
      /"logprobs":true|"message.output_text.logprobs"/,
      { messages: "include" },
    ],
  ],
  "`text.format`, `json_schema`": [[format({ type: "json_schema", schema: { MARK: 1 } }), /MARK/]],
  "name and description of a schema": [[format({ type: "json_schema" }), /(?=.*NAMED)(?=.*WORDS)/]],
  "`text.format`, `json_object`": [[format({ type: "json_object" }), /json_object/, { messages: "text.format" }]],
  "`text.verbosity`": [[{ text: { verbosity: "low" } }, /verbosity/]],
  "`configuration_update`": [
    [
      {
        reasoning: { effort: "high" },
        input: [{ role: "user", content: "a" }, update({ reasoning: { effort: "low" } })],
      },
      /"(reasoning_)?effort":"low"/,
    ],
    [
      {
        input: [
          update({ text: { format: { type: "json_schema", name: "n", schema: { MARK: 1 } } } }),
          { role: "user", content: "a" },
        ],
      },
      /MARK/,
    ],
  ],
  "`reasoning.effort`": [
    [{ reasoning: { effort: "low" } }, /"(reasoning_)?effort":"low"/],
    [{ reasoning: { effort: "none" } }, /"(reasoning_)?effort":"none"/, { messages: /"type":"disabled"/ }],
    [
      { reasoning: { effort: "xhigh" } },
      /"reasoning_effort":"high"/,
      { messages: /"effort":"xhigh"/, responses: /"effort":"xhigh"/ },
    ],
  ],
  "`reasoning.summary`, `reasoning.generate_summary`": [
    [{ reasoning: { effort: "low", summary: "auto" } }, /"summary":"auto"/],
    [{ reasoning: { generate_summary: "auto" } }, /"summary":"auto"/],
  ],
  "`prompt_cache_key`": [[{ prompt_cache_key: "MARK" }, /MARK/]],
  "`store`, `metadata`, `truncation` and any other key": [
    [
      {
        ...{ metadata: { a: "MARK" }, user: "MARK", safety_identifier: "MARK", service_tier: "MARK" },
        ...{ truncation: "MARK", client_metadata: { a: "MARK" }, max_tool_calls: 77, something: { MARK: 1 } },
      },
      /MARK|77/,
    ],
    [{ store: true }, /"store":true/],
  ],
  "`multi_agent` with `enabled: true`": [[{ multi_agent: { enabled: true } }, "multi_agent.enabled"]],
  "`conversation`, `prompt`, `moderation`, `context_management`": [
    { conversation: "x" },
    { prompt: { id: "x" } },
    { moderation: { x: 1 } },
    { context_management: [{ type: "compaction" }] },
  ].map((body) => [body, Object.keys(body)[0]!]),
};
