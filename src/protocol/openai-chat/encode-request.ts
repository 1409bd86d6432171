/**
 * The centre → chat completions, as engines understand it: the names that all of them know (`max_tokens`, `system`), no
 * nulls, nothing that only OpenAI's own service reads. Identical requests render to identical bytes.
 */
import type {
  AssistantTurn,
  InferenceRequest,
  InputPart,
  OutputFormat,
  ReasoningEffort,
  TextPart,
  Tool,
  ToolChoice,
  Turn,
} from "../../inference/request.ts";
import type { UpstreamAsk } from "../codec.ts";

export function encodeRequest(request: InferenceRequest, ask: UpstreamAsk): Record<string, unknown> {
  const { sampling } = request;
  const { tools, choice } = allowed(request);
  return {
    model: ask.model,
    messages: request.turns.map(encodeTurn),
    stream: ask.stream,
    // Always asked for, whatever the caller wants to see: usage is what the service lives by.
    stream_options: ask.stream ? { include_usage: true } : undefined,
    max_tokens: request.outputTokensMax,
    temperature: sampling.temperature,
    top_p: sampling.topP,
    top_k: sampling.topK,
    frequency_penalty: sampling.frequencyPenalty,
    presence_penalty: sampling.presencePenalty,
    seed: sampling.seed,
    logit_bias: sampling.logitBias,
    stop: request.stop.length > 0 ? request.stop : undefined,
    tools: tools.length > 0 ? tools.map(encodeTool) : undefined,
    tool_choice: tools.length > 0 ? choice : undefined,
    parallel_tool_calls: tools.length > 0 ? request.parallelToolCalls : undefined,
    response_format: request.format && encodeFormat(request.format),
    reasoning_effort: request.reasoning?.effort && engineEffort[request.reasoning.effort],
    logprobs: request.logprobs ? true : undefined,
    top_logprobs: request.logprobs?.top || undefined,
    ...request.extra,
  };
}

/** Engines know three levels and "none" (protocols.md, a): the others become the nearest. */
const engineEffort = {
  none: "none",
  minimal: "low",
  low: "low",
  medium: "medium",
  high: "high",
  xhigh: "high",
  max: "high",
} as const satisfies Record<ReasoningEffort, string>;

function encodeTurn(turn: Turn): Record<string, unknown> {
  switch (turn.role) {
    case "system":
    case "developer":
      return { role: "system", content: encodeText(turn.parts), name: turn.name };
    case "user":
      return { role: "user", content: encodeInput(turn.parts), name: turn.name };
    case "assistant":
      return encodeAssistant(turn);
    case "tool":
      return {
        role: "tool",
        tool_call_id: turn.callId,
        content: turn.failed
          ? encodeText([{ kind: "text", text: "Error: " }, ...onlyText(turn.parts)])
          : encodeInput(turn.parts),
      };
  }
}

function encodeAssistant(turn: AssistantTurn): Record<string, unknown> {
  const text = turn.parts.filter((part) => part.kind === "text");
  const reasoning = turn.parts.filter((part) => part.kind === "reasoning");
  const refusals = turn.parts.filter((part) => part.kind === "refusal");
  const calls = turn.parts.filter((part) => part.kind === "tool-call");
  return {
    role: "assistant",
    content: text.length > 0 ? encodeText(text) : calls.length > 0 ? null : "",
    name: turn.name,
    refusal: refusals.length > 0 ? refusals.map((part) => part.text).join("") : undefined,
    reasoning_content: reasoning.length > 0 ? reasoning.map((part) => part.text).join("") : undefined,
    tool_calls:
      calls.length > 0
        ? calls.map((call) => ({
            id: call.callId,
            type: "function",
            function: { name: call.toolName, arguments: call.arguments },
          }))
        : undefined,
  };
}

/** One text is a string, which every engine reads; several stay parts. */
function encodeText(parts: TextPart[]): unknown {
  if (parts.length === 1) return parts[0]?.text;
  return parts.map((part) => ({ type: "text", text: part.text }));
}

function onlyText(parts: InputPart[]): TextPart[] {
  return parts.filter((part) => part.kind === "text");
}

function encodeInput(parts: InputPart[]): unknown {
  const first = parts[0];
  if (parts.length === 1 && first?.kind === "text") return first.text;
  return parts.map(encodePart);
}

function encodePart(part: InputPart): unknown {
  switch (part.kind) {
    case "text":
      return { type: "text", text: part.text };
    case "image":
      return { type: "image_url", image_url: { url: part.url, detail: part.detail } };
    case "audio":
      return { type: "input_audio", input_audio: { data: part.data, format: part.format } };
    case "file":
      return { type: "file", file: { file_data: part.data, filename: part.filename } };
  }
}

function encodeTool(tool: Tool): unknown {
  const { name, description, parameters, strict } = tool;
  return { type: "function", function: { name, description, parameters, strict } };
}

/** `allowed_tools` is a hard constraint that engines do not know: they see the allowed tools only. */
function allowed(request: InferenceRequest): { tools: Tool[]; choice: unknown } {
  const { tools, toolChoice } = request;
  if (toolChoice?.kind !== "allowed") return { tools, choice: toolChoice && encodeChoice(toolChoice) };
  const names = new Set(toolChoice.names);
  return { tools: tools.filter((tool) => names.has(tool.name)), choice: toolChoice.mode };
}

function encodeChoice(choice: Exclude<ToolChoice, { kind: "allowed" }>): unknown {
  return choice.kind === "tool" ? { type: "function", function: { name: choice.name } } : choice.kind;
}

function encodeFormat(format: OutputFormat): unknown {
  if (format.kind === "json_object") return { type: "json_object" };
  const { name, schema, strict, description } = format;
  return { type: "json_schema", json_schema: { name, description, schema, strict } };
}
