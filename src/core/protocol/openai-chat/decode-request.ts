/**
 * Turns a chat completion request into an InferenceRequest. It has been validated (validate.ts); null means the same as
 * absent.
 */
import { Needs } from "../../inference/needs.ts";
import type {
  AssistantPart,
  ToolChoice as CentreToolChoice,
  InferenceRequest,
  InputPart,
  OutputFormat,
  Reasoning,
  ReasoningEffort,
  TextPart,
  Tool,
  ToolCallPart,
  ToolTurn,
  Turn,
} from "../../inference/request.ts";
import { customArguments, customFunction } from "../custom-tool.ts";
import { compact } from "../json.ts";
import { signaturesIn } from "./carried-back.ts";
import {
  type AssistantMessage,
  type ChatCompletionRequest,
  type ChatMessage,
  type ChatToolCall,
  type CustomTool,
  ChatCompletionRequest as contract,
  type NamedTool,
  type ResponseFormat,
  type ToolChoice,
  type ToolDefinition,
  type UserContentPart,
} from "./contract.ts";

export function decodeRequest(wire: ChatCompletionRequest): InferenceRequest {
  const needs = new Needs();
  const turns = wire.messages.map((message, at) => decodeMessage(message, at, needs));
  if (wire.tools?.length) needs.add("tool", "tools");
  if (wire.reasoning_effort) needs.add("reasoning effort", "reasoning_effort");
  if (wire.logprobs) needs.add("log probabilities", "logprobs");
  const format = decodeFormat(wire.response_format);
  if (format) needs.add("form of the answer", "response_format");

  return {
    model: wire.model,
    stream: wire.stream === true,
    turns,
    tools: (wire.tools ?? []).map(decodeTool),
    sampling: compact({
      temperature: wire.temperature,
      topP: wire.top_p,
      frequencyPenalty: wire.frequency_penalty,
      presencePenalty: wire.presence_penalty,
      seed: wire.seed,
      logitBias: wire.logit_bias,
    }),
    stop: typeof wire.stop === "string" ? [wire.stop] : (wire.stop ?? []),
    extra: extraFields(wire),
    needs: needs.list,
    ...compact({
      toolChoice: decodeToolChoice(wire.tool_choice),
      parallelToolCalls: wire.parallel_tool_calls,
      outputTokens_max: wire.max_completion_tokens ?? wire.max_tokens,
      format,
      reasoning: decodeEffort(wire.reasoning_effort),
      logprobs: wire.logprobs ? { top: wire.top_logprobs ?? 0 } : undefined,
      cacheKey: wire.prompt_cache_key,
    }),
  };
}

/**
 * The reasoning settings for an effort. `max` passes the validator only with `bounds: engine`, and the engine then
 * decides about it.
 */
function decodeEffort(effort: ReasoningEffort | null | undefined): Reasoning | undefined {
  if (!effort) return undefined;
  return effort === "max" ? { effort, exactEffort: effort } : { effort };
}

function decodeMessage(message: ChatMessage, at: number, needs: Needs): Turn {
  switch (message.role) {
    case "system":
    case "developer":
      return named({ role: message.role, parts: textParts(message.content) }, message);
    case "user":
      return named({ role: "user", parts: userParts(message.content, at, needs) }, message);
    case "assistant":
      if (message.tool_calls?.length) needs.addAt("call or result", at, "tool_calls");
      return named({ role: "assistant", parts: assistantParts(message) }, message);
    case "tool":
      needs.addAt("call or result", at, "role");
      return { role: "tool", callId: message.tool_call_id, parts: textParts(message.content) };
  }
}

function named(turn: Exclude<Turn, ToolTurn>, { name }: { name?: string | null }): Turn {
  if (name !== undefined && name !== null) turn.name = name;
  return turn;
}

function textParts(content: string | { text: string }[]): TextPart[] {
  if (typeof content === "string") return [{ kind: "text", text: content }];
  return content.map((part) => ({ kind: "text", text: part.text }));
}

function userParts(content: string | UserContentPart[], messageAt: number, needs: Needs): InputPart[] {
  if (typeof content === "string") return [{ kind: "text", text: content }];
  return content.map((part, at) => userPart(part, `messages[${messageAt}].content[${at}]`, needs));
}

function userPart(part: UserContentPart, path: string, needs: Needs): InputPart {
  switch (part.type) {
    case "text":
      return { kind: "text", text: part.text };
    case "image_url":
      needs.add("image", path);
      return { kind: "image", url: part.image_url.url, ...compact({ detail: part.image_url.detail }) };
    case "input_audio":
      needs.add("sound", path);
      return { kind: "audio", data: part.input_audio.data, format: part.input_audio.format };
    case "file":
      needs.add("file", path);
      return { kind: "file", data: part.file.file_data, ...compact({ filename: part.file.filename }) };
  }
}

/**
 * The parts of an assistant message: reasoning, then texts, then calls, which is the order in which a model produces
 * them.
 */
function assistantParts(message: AssistantMessage): AssistantPart[] {
  const parts: AssistantPart[] = [];
  const reasoning = message.reasoning_content || message.reasoning;
  const [first, ...more] = signaturesIn(message);
  if (reasoning || first !== undefined)
    parts.push({ kind: "reasoning", text: reasoning ?? "", ...compact({ signature: first }) });
  for (const signature of more) parts.push({ kind: "reasoning", text: "", signature });
  if (typeof message.content === "string") parts.push({ kind: "text", text: message.content });
  for (const part of Array.isArray(message.content) ? message.content : []) {
    parts.push(part.type === "text" ? { kind: "text", text: part.text } : { kind: "refusal", text: part.refusal });
  }
  if (message.refusal) parts.push({ kind: "refusal", text: message.refusal });
  for (const call of message.tool_calls ?? []) parts.push(callPart(call));
  return parts;
}

function callPart(call: ChatToolCall): ToolCallPart {
  if (call.type === "custom") {
    const { name, input } = call.custom;
    return { kind: "tool-call", callId: call.id, toolName: name, arguments: customArguments(input) };
  }
  const { name, arguments: written } = call.function;
  return { kind: "tool-call", callId: call.id, toolName: name, arguments: written };
}

function decodeTool(tool: ToolDefinition): Tool {
  if (isCustom(tool)) {
    const { name, description, format } = tool.custom;
    const grammar = format?.type === "grammar" ? format.grammar : undefined;
    return customFunction(name, { description, ...compact({ grammar }) });
  }
  const { name, description, parameters, strict } = tool.function;
  return { kind: "function", name, ...compact({ description, parameters, strict }) };
}

function decodeToolChoice(choice: ToolChoice | null | undefined): CentreToolChoice | undefined {
  if (!choice) return undefined;
  if (typeof choice === "string") return { kind: choice };
  if (choice.type !== "allowed_tools") return { kind: "tool", name: nameOf(choice) };
  const { mode, tools } = choice.allowed_tools;
  return { kind: "allowed", mode, names: tools.map(nameOf) };
}

function decodeFormat(format: ResponseFormat | null | undefined): OutputFormat | undefined {
  if (!format || format.type === "text") return undefined;
  if (format.type === "json_object") return { kind: "json_object" };
  const { name, schema, strict, description } = format.json_schema;
  return { kind: "json_schema", name, ...compact({ schema, strict, description }) };
}

/** The fields that the contract does not name. The catalog's `extra_params` allow them, and they are passed on unchanged. */
function extraFields(wire: ChatCompletionRequest): Record<string, unknown> {
  const extra: Record<string, unknown> = {};
  for (const [field, value] of Object.entries(wire)) {
    if (!Object.hasOwn(contract.properties, field) && value !== null) extra[field] = value;
  }
  return extra;
}

export function nameOf(tool: ToolDefinition | NamedTool): string {
  return tool.type === "custom" ? tool.custom.name : tool.function.name;
}

export function isCustom(tool: ToolDefinition): tool is CustomTool {
  return tool.type === "custom";
}

/** The names of custom tools. Engines call them as functions, and the caller gets their calls with plain text. */
export function customNames({ tools }: Pick<ChatCompletionRequest, "tools">): ReadonlySet<string> {
  return new Set((tools ?? []).filter(isCustom).map(nameOf));
}

/**
 * The part of a request that is needed to write its answer: the names of the custom tools, whose calls are written
 * differently.
 */
export function remainder(wire: ChatCompletionRequest): ChatCompletionRequest {
  return { ...wire, messages: [], tools: (wire.tools ?? []).filter(isCustom) };
}
