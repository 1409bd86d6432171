/** How each type of OpenAI's SDK of Responses is treated, its beta among them. */
import { png } from "../losses/probe.ts";
import { typesOf } from "./declarations.ts";
import { answered, carried, each, leftOut, type Place, passedOver, placesOf, refused, under, union } from "./place.ts";

const { request, answer, events } = placesOf("responses");
const stable = (name: string) => typesOf("responses", name);
const beta = (name: string) => typesOf("betaResponses", name);

const said = { role: "user", content: "a" };
const input = (...items: object[]) => ({ input: [said, ...items] });
const shown = (part: object) => ({ input: [{ role: "user", content: [part] }] });
const told = (part: object) => ({ input: [said, { type: "message", role: "assistant", content: [part] }, said] });
const image = { type: "input_image", image_url: `data:image/png;base64,${png}` };
const file = { type: "input_file", file_data: "JVBERi0x", filename: "a.pdf" };
const tool = { type: "function", name: "f", parameters: { type: "object", properties: { MARK: {} } } };
const custom = { type: "custom", name: "patch", description: "MARK" };
const call = { type: "function_call", call_id: "c1", name: "f", arguments: '{"MARK":1}' };
const customCall = { type: "custom_tool_call", call_id: "c1", name: "patch", input: "MARK" };
const result = (output: unknown) => input(call, { type: "function_call_output", call_id: "c1", output });
const thought = {
  type: "reasoning",
  summary: [{ type: "summary_text", text: "MARK" }],
  content: [],
  encrypted_content: "p",
};
const schema = { type: "json_schema", name: "n", schema: { MARK: 1 } };

const text = { type: "output_text", text: "TEXT", annotations: [] };
const message = (...content: object[]) => ({ type: "message", role: "assistant", content });
const reply = (...output: object[]) => ({ status: "completed", output, usage: null });

const hosted = [
  "code_interpreter",
  "file_search",
  "image_generation",
  "mcp",
  "tool_search",
  "web_search",
  "web_search_2025_08_26",
  "web_search_preview",
  "web_search_preview_2025_03_11",
];

/** Items that no engine behind this service makes or reads. */
const strangeItems = [
  "agent_message",
  "apply_patch_call",
  "apply_patch_call_output",
  "code_interpreter_call",
  "compaction",
  "computer_call",
  "computer_call_output",
  "file_search_call",
  "image_generation_call",
  "local_shell_call",
  "local_shell_call_output",
  "mcp_approval_request",
  "mcp_approval_response",
  "mcp_call",
  "mcp_list_tools",
  "multi_agent_call",
  "multi_agent_call_output",
  "program",
  "program_output",
  "shell_call",
  "shell_call_output",
  "tool_search_call",
  "tool_search_output",
  "web_search_call",
];

export const responsesPlaces: Record<string, Place> = {
  "Responses: item of the input": request(
    union(stable("ResponseInputItem"), beta("BetaResponseInputItem")),
    {
      message: carried(input({ type: "message", role: "user", content: "MARK" }), /MARK/),
      function_call: carried(result("a"), /MARK/),
      function_call_output: carried(result("RESULT"), /RESULT/),
      custom_tool_call: carried(input(customCall), /MARK/),
      custom_tool_call_output: carried(
        input(customCall, { type: "custom_tool_call_output", call_id: "c1", output: "RESULT" }),
        /RESULT/,
      ),
      reasoning: carried(
        input({ type: "reasoning", summary: [], content: [{ type: "reasoning_text", text: "MARK" }] }),
        /MARK/,
      ),
      additional_tools: carried(input({ type: "additional_tools", role: "developer", tools: [tool] }), /MARK/),
      configuration_update: carried(input({ type: "configuration_update", reasoning: { effort: "low" } }), /"low"/),
      item_reference: carried(input({ type: "item_reference", id: "msg_1" }), /STORED/),
      compaction: carried(input({ type: "compaction", encrypted_content: "compaction.1:MARK" }), /MARK/),
      compaction_trigger: carried(input({ type: "compaction_trigger" }), /about to be replaced by what you write now/),
      ...each(
        strangeItems.filter((type) => type !== "compaction"),
        () => refused,
      ),
    },
    (type) => [{ body: input({ type, id: "x" }), param: "input[1].type" }],
  ),
  "Responses: part of the input": request(
    union(stable("ResponseInputContent"), stable("ResponseFunctionCallOutputItem"), beta("BetaResponseInputContent")),
    {
      input_text: carried(shown({ type: "input_text", text: "MARK" }), /MARK/),
      input_image: carried(shown(image), /iVBORw0KGgo/),
      input_file: carried(shown(file), /JVBERi0x/),
    },
  ),
  "Responses: part of an answer in the input": request(
    union(stable("ResponseOutputMessage.content"), beta("BetaResponseOutputMessage.content")),
    {
      output_text: carried(told({ type: "output_text", text: "MARK", annotations: [] }), /MARK/),
      refusal: carried(told({ type: "refusal", refusal: "MARK" }), /MARK/),
    },
  ),
  "Responses: tool": request(
    union(stable("Tool"), beta("BetaTool")),
    {
      function: carried({ tools: [tool] }, /MARK/),
      custom: carried({ tools: [custom] }, /MARK/),
      namespace: carried({ tools: [{ type: "namespace", name: "space", tools: [tool] }] }, /space/),
      ...each(hosted, (type) => leftOut({ tools: [tool, { type }] }, { tools: [tool] })),
      ...each(
        ["apply_patch", "computer", "computer_use_preview", "local_shell", "programmatic_tool_calling", "shell"],
        () => refused,
      ),
    },
    (type) => [{ body: { tools: [tool, { type }] }, param: "tools[1].type" }],
  ),
  "Responses: tool in a namespace": request(
    stable("NamespaceTool.tools"),
    each(["function", "custom"], (type) =>
      carried({ tools: [{ type: "namespace", name: "space", tools: [{ ...tool, type }] }] }, /space/),
    ),
  ),
  "Responses: choice of a tool": request(
    union(stable("ResponseCreateParamsBase.tool_choice"), beta("ResponseCreateParamsBase.tool_choice")),
    {
      function: carried({ tools: [tool], tool_choice: { type: "function", name: "f" } }, /"required"|"type":"tool"/),
      custom: carried({ tools: [custom], tool_choice: { type: "custom", name: "patch" } }, /"required"|"type":"tool"/),
      allowed_tools: carried(
        {
          tools: [tool, custom],
          tool_choice: { type: "allowed_tools", mode: "auto", tools: [{ type: "function", name: "f" }] },
        },
        /^(?!.*patch)/,
      ),
      ...each(
        [
          "apply_patch",
          "code_interpreter",
          "computer",
          "computer_use",
          "computer_use_preview",
          "file_search",
          "image_generation",
          "mcp",
          "programmatic_tool_calling",
          "shell",
          "web_search_preview",
          "web_search_preview_2025_03_11",
        ],
        () => refused,
      ),
    },
    (type) => [
      { body: { tools: [tool], tool_choice: { type } }, param: "tool_choice.type" },
      {
        body: { tools: [tool], tool_choice: { type: "allowed_tools", mode: "auto", tools: [{ type }] } },
        param: "tool_choice.tools[0].type",
      },
    ],
  ),
  "Responses: form of the answer": request(
    union(stable("ResponseFormatTextConfig"), beta("BetaResponseFormatTextConfig")),
    {
      text: leftOut({ text: { format: { type: "text" } } }, {}),
      json_object: carried({ text: { format: { type: "json_object" } } }, /json_object/),
      json_schema: carried({ text: { format: schema } }, /MARK/),
    },
  ),
  "Responses: item of an answer": answer(
    union(stable("ResponseOutputItem"), beta("BetaResponseOutputItem")),
    {
      message: answered(reply(message({ ...text, text: "MARK" })), /MARK/),
      reasoning: answered(reply(thought), /MARK/),
      function_call: answered(reply(call), /MARK/),
      custom_tool_call: answered(reply(customCall), /custom_tool_call.*MARK/),
      ...each(
        [...strangeItems, "additional_tools", "custom_tool_call_output", "function_call_output"],
        () => passedOver,
      ),
    },
    (type) => reply({ type, id: "x", call_id: "c", name: "x", output: "x", tools: [] }, message(text)),
  ),
  "Responses: part of an answer": answer(
    stable("ResponseOutputMessage.content"),
    {
      output_text: answered(reply(message({ ...text, text: "MARK" })), /MARK/),
      refusal: answered(reply(message({ type: "refusal", refusal: "MARK" })), /MARK/),
    },
    () => reply(message(text)),
  ),
  "Responses: part of reasoning": answer(
    union(stable("ResponseReasoningItem.content"), stable("ResponseReasoningItem.summary")),
    {
      reasoning_text: answered(
        reply({ type: "reasoning", summary: [], content: [{ type: "reasoning_text", text: "MARK" }] }),
        /"type":"reasoning_text","text":"MARK"/,
      ),
      summary_text: answered(reply(thought), /"text":"MARK"/),
    },
    () => reply(message(text)),
  ),
  "Responses: event of a stream": events(union(stable("ResponseStreamEvent"), beta("BetaResponseStreamEvent")), {
    ...each(
      [
        ...under("response.", "created", "in_progress", "completed", "incomplete", "failed"),
        ...under("response.output_item.", "added", "done"),
        ...under("response.content_part.", "added", "done"),
        ...under("response.output_text.", "delta", "done"),
        ...under("response.refusal.", "delta", "done"),
        ...under("response.reasoning_text.", "delta", "done"),
        ...under("response.reasoning_summary_part.", "added", "done"),
        ...under("response.reasoning_summary_text.", "delta", "done"),
        ...under("response.function_call_arguments.", "delta", "done"),
        ...under("response.custom_tool_call_input.", "delta", "done"),
      ],
      () => ({ verdict: "carried" as const }),
    ),
    ...each(
      [
        ...["error", "response.queued", "response.compaction.compacting", "response.output_text.annotation.added"],
        ...under("response.audio.", "delta", "done", "transcript.delta", "transcript.done"),
        ...under("response.code_interpreter_call.", "in_progress", "interpreting", "completed"),
        ...under("response.code_interpreter_call_code.", "delta", "done"),
        ...under("response.file_search_call.", "in_progress", "searching", "completed"),
        ...under("response.image_generation_call.", "in_progress", "generating", "partial_image", "completed"),
        ...under("response.mcp_call.", "in_progress", "completed", "failed"),
        ...under("response.mcp_call_arguments.", "delta", "done"),
        ...under("response.mcp_list_tools.", "in_progress", "completed", "failed"),
        ...under("response.shell_call_command.", "added", "delta", "done"),
        ...under("response.shell_call_output_content.", "delta", "done"),
        ...under("response.web_search_call.", "in_progress", "searching", "completed"),
      ],
      () => passedOver,
    ),
  }),
};
