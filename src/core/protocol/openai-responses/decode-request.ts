/**
 * Turns a Responses request into an InferenceRequest. It has been validated, and its references are resolved
 * (references.ts).
 */
import { instructionTurn, isSummary, summaryTurn } from "../../inference/compaction.ts";
import { Needs } from "../../inference/needs.ts";
import type {
  AssistantPart,
  InferenceRequest,
  InputPart,
  OutputFormat,
  Reasoning,
  ReasoningEffort,
  TextPart,
  Tool,
  ToolChoice,
  Turn,
} from "../../inference/request.ts";
import { customArguments, customFunction } from "../custom-tool.ts";
import { compact } from "../json.ts";
import { invalid, violationFault } from "../violation.ts";
import type {
  MessageItem,
  NamedTool,
  OutputPart,
  ReasoningItem,
  ResponsesRequest,
  SummaryWish,
  TextFormat,
  InputPart as WirePart,
} from "./contract.ts";
import { native } from "./native.ts";
import { conversationOf, isCompaction, PlacedItem } from "./references.ts";
import { Results } from "./results.ts";
import { unseal, unsealCompaction } from "./sealed.ts";
import { type EngineTool, listedTools, ToolBook } from "./tools.ts";

/** Decodes the request. Throws a Fault if the conversation has no content. */
export function decodeRequest(wire: ResponsesRequest): InferenceRequest {
  const items = conversationOf(wire);
  return isCompaction(wire) ? decodeCompaction(wire, items) : decodeConversation(wire, items);
}

/**
 * Makes the request for a summary: the conversation with an instruction to summarize it. The summary is plain text, so
 * tools and formats are left out.
 */
function decodeCompaction(wire: ResponsesRequest, items: readonly PlacedItem[]): InferenceRequest {
  const plain = { ...wire, tools: null, tool_choice: null, text: null, include: null, top_logprobs: null };
  const kept = items.some(isSetting)
    ? items.filter(({ item }) => item.type !== "additional_tools").map(withoutFormat)
    : items;
  const request = decodeConversation(plain, kept);
  const summary = request.turns.findLast(isSummary) ?? null;
  request.turns.push(instructionTurn());
  return { ...request, compaction: { summary, leftOutTurns: 0, notice: null } };
}

function isSetting({ item }: PlacedItem): boolean {
  return item.type === "additional_tools" || item.type === "configuration_update";
}

/** The item without its setting of the answer's format (`text`). */
function withoutFormat(placed: PlacedItem): PlacedItem {
  const { item, place } = placed;
  return item.type === "configuration_update" ? new PlacedItem({ ...item, text: null }, place) : placed;
}

function decodeConversation(wire: ResponsesRequest, items: readonly PlacedItem[]): InferenceRequest {
  const needs = new Needs();
  const book = new ToolBook(listedTools(wire, items));
  const turns = decodeItems(items, { book, needs, model: wire.model });
  if (wire.instructions) turns.unshift({ role: "system", parts: [{ kind: "text", text: wire.instructions }] });
  if (turns.length === 0) throw violationFault(emptyConversation);
  const tools = book.tools.map(decodeTool);
  if (tools.length > 0) needs.add("tool", wire.tools?.length ? "tools" : toolsParam(items));
  const updated = settingsIn(items);
  const format = decodeFormat(updated.format?.value ?? wire.text?.format);
  if (format) needs.add("form of the answer", updated.format?.param ?? "text.format");
  const logprobs = decodeLogprobs(wire);
  if (logprobs) needs.add("log probabilities", wire.top_logprobs ? "top_logprobs" : "include");

  return {
    model: wire.model,
    stream: wire.stream === true,
    turns,
    tools,
    sampling: compact({ temperature: wire.temperature, topP: wire.top_p }),
    stop: [],
    extra: {},
    needs: needs.list,
    ...compact({
      toolChoice: tools.length > 0 ? decodeChoice(wire, book) : undefined,
      parallelToolCalls: tools.length > 0 ? wire.parallel_tool_calls : undefined,
      outputTokens_max: wire.max_output_tokens,
      format,
      reasoning: decodeReasoning(wire, updated.effort),
      logprobs,
      cacheKey: wire.prompt_cache_key,
    }),
  };
}

/**
 * The violation of a conversation without content, which engines refuse. Lists of tools, and reasoning that another
 * service encrypted, are no content.
 */
const emptyConversation = invalid("input", "must have content for the model.");

function toolsParam(items: readonly PlacedItem[]): string {
  return items.find(({ item }) => item.type === "additional_tools")?.param ?? "tools";
}

// ---- items -----------------------------------------------------------------------------------------------------------

interface Reading {
  book: ToolBook;
  needs: Needs;
  model: string;
}

/** Makes turns of the items. Consecutive items that the model wrote (reasoning, text, calls) become one turn. */
function decodeItems(items: readonly PlacedItem[], reading: Reading): Turn[] {
  const turns: Turn[] = [];
  const results = new Results();
  for (const one of items) {
    const parts = assistantParts(one, reading);
    if (parts) {
      results.called(parts);
      const last = turns.at(-1);
      if (last?.role === "assistant") last.parts.push(...parts);
      else if (parts.length > 0) turns.push({ role: "assistant", parts });
      continue;
    }
    const turn = decodeItem(one, reading);
    if (turn && !(turn.role === "tool" && results.joins(turn))) turns.push(turn);
  }
  return turns;
}

function decodeItem(placed: PlacedItem, { needs }: Reading): Turn | null {
  const { item } = placed;
  switch (item.type) {
    case "message": {
      const parts = contentParts(item.content, () => `${placed.param}.content`, needs);
      if (item.role === "user") return { role: "user", parts };
      return { role: item.role === "developer" ? "developer" : "system", parts: parts.filter(isText) };
    }
    case "compaction":
      return summaryTurn(unsealCompaction(item.encrypted_content));
    case "function_call_output":
    case "custom_tool_call_output":
      needs.add("call or result", () => placed.param);
      return {
        role: "tool",
        callId: item.call_id,
        parts: contentParts(item.output, () => `${placed.param}.output`, needs),
      };
    default:
      return null;
  }
}

const isText = (part: InputPart): part is TextPart => part.kind === "text";

/** The parts of an item that the model wrote; null for any other item. */
function assistantParts(placed: PlacedItem, { book, needs, model }: Reading): AssistantPart[] | null {
  const { item } = placed;
  switch (item.type) {
    case "message":
      return item.role === "assistant" ? answerParts(item) : null;
    case "reasoning":
      return reasoningParts(item, model);
    case "function_call":
    case "custom_tool_call": {
      needs.add("call or result", () => placed.param);
      const { type, call_id: callId, name, namespace } = item;
      const written = item.type === "function_call" ? { arguments: item.arguments } : { input: item.input };
      const wire = { type, call_id: callId, name, ...written, namespace: namespace ?? undefined };
      return [
        {
          kind: "tool-call",
          callId,
          toolName: book.nameOf(name, namespace),
          arguments: item.type === "function_call" ? item.arguments : customArguments(item.input),
          native: native(wire),
        },
      ];
    }
    default:
      return null;
  }
}

function answerParts({ content }: MessageItem): AssistantPart[] {
  if (typeof content === "string") return [{ kind: "text", text: content }];
  return content.flatMap((part): AssistantPart[] => {
    if (part.type === "refusal") return [{ kind: "refusal", text: part.refusal }];
    return part.type === "input_text" || part.type === "output_text" ? [{ kind: "text", text: part.text }] : [];
  });
}

/**
 * The parts of a reasoning item. If this service wrote its `encrypted_content`, that content has all of the reasoning.
 * If another service encrypted it, it is ignored, and only the item's text is used.
 */
function reasoningParts(
  { content, summary, encrypted_content: sealed }: ReasoningItem,
  model: string,
): AssistantPart[] {
  const unsealed = sealed ? unseal(sealed, model) : null;
  const written = content?.length ? content.map((part) => part.text).join("") : null;
  const text = unsealed?.text || (written ?? (summary ?? []).map((part) => part.text).join("\n\n"));
  const part: AssistantPart = { kind: "reasoning", ...unsealed, text };
  return part.text === "" && part.signature === undefined && part.encrypted === undefined ? [] : [part];
}

/** Makes a field's path. Called only when the path is needed. */
type Path = () => string;

function contentParts(content: string | readonly (WirePart | OutputPart)[], path: Path, needs: Needs): InputPart[] {
  if (typeof content === "string") return [{ kind: "text", text: content }];
  return content.map((part, at) => contentPart(part, () => `${path()}[${at}]`, needs));
}

function contentPart(part: WirePart | OutputPart, path: Path, needs: Needs): InputPart {
  switch (part.type) {
    case "input_text":
    case "output_text":
      return { kind: "text", text: part.text };
    case "refusal":
      return { kind: "text", text: part.refusal };
    case "input_image":
      needs.add("image", path);
      return { kind: "image", url: part.image_url, ...compact({ detail: part.detail }) };
    case "input_file":
      needs.add("file", path);
      return { kind: "file", data: part.file_data, ...compact({ filename: part.filename }) };
  }
}

// ---- tools and the rest ----------------------------------------------------------------------------------------------

function decodeTool({ name, tool, within }: EngineTool): Tool {
  // OpenAI refuses a deferred tool if the tool search that finds it, a hosted tool, is not listed.
  const { defer_loading: _, ...listed } = tool as typeof tool & { defer_loading?: unknown };
  const wire = within ? { ...within, tools: [listed] } : listed;
  if (tool.type === "function") {
    const { description, parameters, strict } = tool;
    return { kind: "function", name, ...compact({ description, parameters, strict }), native: native(wire) };
  }
  const { description, format } = tool;
  const grammar = format?.type === "grammar" ? format : undefined;
  return { ...customFunction(name, { description, ...compact({ grammar }) }), native: native(wire) };
}

function decodeChoice({ tool_choice: choice }: ResponsesRequest, book: ToolBook): ToolChoice | undefined {
  if (!choice) return undefined;
  if (typeof choice === "string") return { kind: choice };
  const nameOf = ({ name, namespace }: NamedTool) => book.nameOf(name, namespace);
  if (choice.type !== "allowed_tools") return { kind: "tool", name: nameOf(choice) };
  return { kind: "allowed", mode: choice.mode, names: choice.tools.map(nameOf) };
}

interface Settings {
  effort?: ReasoningEffort;
  format?: { value: TextFormat; param: string };
}

/**
 * The settings in the conversation's items, which replace the request's settings. The last value of each setting
 * applies.
 */
function settingsIn(items: readonly PlacedItem[]): Settings {
  const settings: Settings = {};
  for (const one of items) {
    const { item } = one;
    if (item.type !== "configuration_update") continue;
    if (item.reasoning?.effort) settings.effort = item.reasoning.effort;
    if (item.text?.format) settings.format = { value: item.text.format, param: `${one.param}.text.format` };
  }
  return settings;
}

function decodeFormat(format: TextFormat | null | undefined): OutputFormat | undefined {
  if (!format || format.type === "text") return undefined;
  if (format.type === "json_object") return { kind: "json_object" };
  const { name, schema, strict, description } = format;
  return { kind: "json_schema", name, schema, ...compact({ strict, description }) };
}

/**
 * Reads the reasoning settings. They are only a hint, and need no capability of the engine, because agents always send
 * them (inference/request.ts). Only engines of this protocol get `summary`.
 */
function decodeReasoning(request: ResponsesRequest, updated: ReasoningEffort | undefined): Reasoning | undefined {
  const reasoning = compact({ effort: updated ?? request.reasoning?.effort });
  const wire = { ...reasoning, ...compact({ summary: summaryWish(request) }) };
  return Object.keys(wire).length > 0 ? { ...reasoning, native: native(wire) } : undefined;
}

/**
 * The kind of reasoning summary that the caller asks for, in the field `summary` or, under its old name,
 * `generate_summary`. Null: the caller wants the reasoning itself.
 */
export function summaryWish({ reasoning }: Pick<ResponsesRequest, "reasoning">): SummaryWish | null {
  return reasoning?.summary ?? reasoning?.generate_summary ?? null;
}

export function decodeLogprobs({ include, top_logprobs: top }: ResponsesRequest): { top: number } | undefined {
  return top || include?.includes("message.output_text.logprobs") ? { top: top ?? 0 } : undefined;
}
