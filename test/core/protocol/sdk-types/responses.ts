/** The treatment of each type in OpenAI's SDK for Responses, including the beta. */
import { typesOf } from "./declarations.ts";
import { carried, each, leftOut, type Place, passedOver, placesOf, refused, under, union } from "./place.ts";

const { request, answer, events } = placesOf("responses");
const stable = (name: string) => typesOf("responses", name);
const beta = (name: string) => typesOf("betaResponses", name);

const said = { role: "user", content: "a" };
const input = (...items: object[]) => ({ input: [said, ...items] });
const tool = { type: "function", name: "f", parameters: {} };

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

/** Items that no engine behind this service produces or reads. */
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
    ["input"],
    union(stable("ResponseInputItem"), beta("BetaResponseInputItem")),
    {
      ...carried("message", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output"),
      ...carried("reasoning", "additional_tools", "configuration_update", "item_reference"),
      ...carried("compaction", "compaction_trigger"),
      ...each(
        strangeItems.filter((type) => type !== "compaction"),
        () => refused,
      ),
    },
    (type) => [{ body: input({ type, id: "x" }), param: "input[1].type" }],
  ),
  "Responses: part of the input": request(
    ["input<message>.content"],
    union(stable("ResponseInputContent"), beta("BetaResponseInputContent")),
    carried("input_text", "input_image", "input_file"),
  ),
  "Responses: part of the output of a function": request(
    ["input<function_call_output>.output"],
    stable("ResponseFunctionCallOutputItem"),
    carried("input_text", "input_image", "input_file"),
  ),
  "Responses: part of an answer in the input": request(
    ["input<message>.content"],
    union(stable("ResponseOutputMessage.content"), beta("BetaResponseOutputMessage.content")),
    carried("output_text", "refusal"),
  ),
  "Responses: tool": request(
    ["tools"],
    union(stable("Tool"), beta("BetaTool")),
    {
      ...carried("function", "custom", "namespace"),
      ...each(hosted, (type) => leftOut({ tools: [tool, { type }] }, { tools: [tool] })),
      ...each(
        ["apply_patch", "computer", "computer_use_preview", "local_shell", "programmatic_tool_calling", "shell"],
        () => refused,
      ),
    },
    (type) => [{ body: { tools: [tool, { type }] }, param: "tools[1].type" }],
  ),
  "Responses: tool in a namespace": request(
    ["tools<namespace>.tools"],
    stable("NamespaceTool.tools"),
    carried("function", "custom"),
  ),
  "Responses: choice of a tool": request(
    ["tool_choice"],
    union(stable("ResponseCreateParamsBase.tool_choice"), beta("ResponseCreateParamsBase.tool_choice")),
    {
      ...carried("function", "custom", "allowed_tools"),
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
    ["text.format"],
    union(stable("ResponseFormatTextConfig"), beta("BetaResponseFormatTextConfig")),
    {
      text: leftOut({ text: { format: { type: "text" } } }, {}),
      ...carried("json_object", "json_schema"),
    },
  ),
  "Responses: item of an answer": answer(
    ["output"],
    union(stable("ResponseOutputItem"), beta("BetaResponseOutputItem")),
    {
      ...carried("message", "reasoning", "function_call", "custom_tool_call"),
      ...each(
        [...strangeItems, "additional_tools", "custom_tool_call_output", "function_call_output"],
        () => passedOver,
      ),
    },
    (type) => reply({ type, id: "x", call_id: "c", name: "x", output: "x", tools: [] }, message(text)),
  ),
  "Responses: part of an answer": answer(
    ["output<message>.content"],
    stable("ResponseOutputMessage.content"),
    carried("output_text", "refusal"),
  ),
  "Responses: part of reasoning": answer(
    ["output<reasoning>.content", "output<reasoning>.summary"],
    union(stable("ResponseReasoningItem.content"), stable("ResponseReasoningItem.summary")),
    carried("reasoning_text", "summary_text"),
  ),
  "Responses: event of a stream": events(union(stable("ResponseStreamEvent"), beta("BetaResponseStreamEvent")), {
    ...carried(
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
