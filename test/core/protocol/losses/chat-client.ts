/** Requests of chat clients, row by row of docs/protocols.md, and the content that each engine must see. */
import { type Probe, png, says, text, user } from "./probe.ts";

const called = { id: "c1", type: "function", function: { name: "f", arguments: '{"MARK":1}' } };
const grammar = { syntax: "lark", definition: "GRAMMAR" };
const custom = { type: "custom", custom: { name: "patch", format: { type: "grammar", grammar } } };
const chatTool = {
  type: "function",
  function: { name: "f", description: "WORDS", parameters: { type: "object", properties: { MARK: {} } } },
};
const history = (message: object) =>
  says({ role: "user", content: "a" }, { role: "assistant", content: "b", ...message }, { role: "user", content: "c" });
const schema = { name: "NAMED", description: "WORDS", schema: { MARK: 1 } };

export const chatProbes: Record<string, Probe> = {
  "`system` and `developer` messages": [
    [says({ role: "system", content: "MARK" }, user(text("a"))), /MARK/],
    [says(user(text("a")), { role: "developer", content: "MARK" }), /MARK/],
  ],
  text: [
    [says({ role: "user", content: "MARK" }), /MARK/],
    [history({ content: [text("MARK")] }), /MARK/],
  ],
  "`name` of a message": [[says({ role: "user", name: "MARK", content: "a" }), /MARK/]],
  "`image_url`": [
    [says(user({ type: "image_url", image_url: { url: "https://MARK" } })), /MARK/],
    [says(user({ type: "image_url", image_url: { url: `data:image/png;base64,${png}` } })), /iVBORw0KGgo/],
  ],
  "`image_url.detail`": [[says(user({ type: "image_url", image_url: { url: "https://a", detail: "low" } })), /"low"/]],
  "`input_audio`": [
    [
      says(user({ type: "input_audio", input_audio: { data: "MARK", format: "wav" } })),
      "messages[0].content[0]",
      { chat: /MARK/ },
    ],
  ],
  "`file`, PDF or plain text": [
    [says(user({ type: "file", file: { file_data: "JVBERi0x" } })), /JVBERi0x/],
    [
      says(user({ type: "file", file: { file_data: "data:text/plain;base64,TUFSSw==" } })),
      /TUFSSw==/,
      { messages: /"data":"MARK"/ },
    ],
  ],
  "`file` of another kind": [
    [
      says(user({ type: "file", file: { file_data: "data:text/csv;base64,TUFSSw==" } })),
      /TUFSSw==/,
      { messages: "messages[0].content[0]" },
    ],
  ],
  "`refusal` in the history": [
    [history({ refusal: "MARK" }), /MARK/],
    [history({ content: [{ type: "refusal", refusal: "MARK" }] }), /MARK/],
  ],
  "`reasoning_content` in the history": [[history({ reasoning_content: "MARK" }), /MARK/]],
  "`tool_calls` and `tool` messages": ["RESULT", [text("RESULT")]].map((content) => [
    says(user(text("a")), { role: "assistant", tool_calls: [called] }, { role: "tool", tool_call_id: "c1", content }),
    /MARK.*RESULT/,
  ]),
  "`custom` calls in the history": [
    [
      {
        tools: [custom],
        ...says(
          user(text("a")),
          { role: "assistant", tool_calls: [{ id: "c1", type: "custom", custom: { name: "patch", input: "MARK" } }] },
          { role: "tool", tool_call_id: "c1", content: "RESULT" },
        ),
      },
      /"arguments":"\{\\"input\\":\\"MARK\\"\}".*RESULT/,
      { messages: /"input":\{"input":"MARK"\}.*RESULT/ },
    ],
  ],
  "`tools`": [[{ tools: [chatTool] }, /(?=.*MARK)(?=.*WORDS)/]],
  "`custom` tools, with a grammar": [
    [{ tools: [custom] }, /"name":"patch".*GRAMMAR.*"input":\{"type":"string"/],
    [{ tools: [{ type: "custom", custom: { name: "patch", format: { type: "text" } } }] }, /"patch".*plain text/],
  ],
  "`tool_choice`, `allowed_tools` too": [
    [
      { tools: [chatTool, custom], tool_choice: { type: "custom", custom: { name: "patch" } } },
      /^(?!.*"name":"f").*"tool_choice":"required"/,
      { messages: /"tool_choice":{"type":"tool","name":"patch"/ },
    ],
    [{ tools: [chatTool], tool_choice: "required" }, /"tool_choice":("required"|{"type":"any"})/],
    [
      { tools: [chatTool], tool_choice: { type: "function", function: { name: "f" } } },
      /"tool_choice":"required","parallel_tool_calls":false/,
      { messages: /"tool_choice":{"type":"tool","name":"f"/ },
    ],
    [
      {
        tools: [chatTool, custom],
        tool_choice: {
          type: "allowed_tools",
          allowed_tools: { mode: "required", tools: [{ type: "function", function: { name: "f" } }] },
        },
      },
      /^(?!.*patch).*"tool_choice":("required"|{"type":"any"})/,
    ],
  ],
  "`parallel_tool_calls: false`": [
    [
      { tools: [chatTool], parallel_tool_calls: false },
      /"parallel_tool_calls":false/,
      { messages: /"disable_parallel_tool_use":true/ },
    ],
  ],
  "`max_tokens`, `max_completion_tokens`": [
    [{ max_tokens: 77 }, /"max_(output_)?tokens":77/],
    [{ max_completion_tokens: 77 }, /"max_(output_)?tokens":77/],
  ],
  "`temperature` up to 1, `top_p`": [[{ temperature: 1, top_p: 0.5 }, /"temperature":1,"top_p":0.5/]],
  "`temperature` above 1": [[{ temperature: 1.5 }, /1.5/, { messages: "temperature" }]],
  "`frequency_penalty`, `presence_penalty`": [
    [{ frequency_penalty: 1.5 }, "frequency_penalty", { chat: /1.5/ }],
    [{ presence_penalty: 1.5 }, "presence_penalty", { chat: /1.5/ }],
  ],
  "`logit_bias`": [[{ logit_bias: { "77": 1 } }, "logit_bias", { chat: /"77"/ }]],
  "`logprobs`": [[{ logprobs: true, top_logprobs: 3 }, /"top_logprobs":3/, { messages: "logprobs" }]],
  "`seed`": [[{ seed: 77 }, /77/]],
  "`stop`": [[{ stop: "MARK" }, /\["MARK"\]/, { responses: "stop" }]],
  "`response_format`, `json_schema`": [[{ response_format: { type: "json_schema", json_schema: schema } }, /MARK/]],
  "name and description of a schema": [
    [{ response_format: { type: "json_schema", json_schema: schema } }, /NAMED.*WORDS/],
  ],
  "`response_format`, `json_object`": [
    [{ response_format: { type: "json_object" } }, /json_object/, { messages: "response_format" }],
  ],
  "`reasoning_effort`": [
    [{ reasoning_effort: "low" }, /"(reasoning_)?effort":"low"/],
    [{ reasoning_effort: "none" }, /"(reasoning_)?effort":"none"/, { messages: /"type":"disabled"/ }],
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
  "`n` other than 1, `audio`, `functions`, `moderation`, `web_search_options`": [
    { n: 2 },
    { n: 0 },
    { audio: {} },
    { functions: [] },
    { moderation: { model: "a" } },
    { web_search_options: {} },
  ].map((body) => [body, Object.keys(body)[0]!]),
};
