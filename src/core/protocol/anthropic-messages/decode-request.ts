/**
 * Turns a Messages request into an `InferenceRequest`, which is independent of protocols. It has been validated
 * (validate.ts); null means the same as absent.
 */
import type {
  AssistantTurn,
  InferenceRequest,
  InputPart,
  OutputFormat,
  Reasoning,
  SystemTurn,
  TextPart,
  Tool,
  ToolChoice,
  ToolTurn,
  Turn,
} from "../../inference/request.ts";
import { isCall } from "../../inference/turns.ts";
import { compact, textOf } from "../json.ts";
import { withoutBillingLine } from "./billing-line.ts";
import type {
  CountTokensRequest,
  MessageParam,
  MessagesRequest,
  MessagesTool,
  MessagesToolChoice,
  SystemMessageParam,
  ToolResultBlockParam,
  UserContentBlock,
} from "./contract.ts";
import { addInput, addInputs, assistantParts, type MakePath, MessagesNeeds, textParts } from "./decode-blocks.ts";
import { withNative } from "./native.ts";
import { changesIn, definedBy, toolsInForce } from "./tool-changes.ts";
import { asFunction, callableTools } from "./tools.ts";
import { writtenOf } from "./written.ts";

export interface MessagesOptions {
  /** Whether to keep the line that Claude Code puts at the head of its system text (billing-line.ts). */
  keep_billing_line?: boolean;
}

/** A request for an answer or for a count. A count has only some of the fields. */
type MessagesInput = CountTokensRequest & Partial<Omit<MessagesRequest, keyof CountTokensRequest>>;

export function decodeRequest(wire: MessagesInput, options: MessagesOptions = {}): InferenceRequest {
  const steps = decodingSteps(wire, options);
  let step = steps.next();
  while (!step.done) step = steps.next();
  return step.value;
}

/** Decodes a request in steps of a few thousand messages, so that other requests can be served between the steps. */
export function* decodingSteps(
  wire: MessagesInput,
  options: MessagesOptions = {},
): Generator<void, InferenceRequest, void> {
  const needs = new MessagesNeeds();
  const system = systemTurn(wire, options);
  const turns: Turn[] = [...system];
  yield* decodeMessages(wire.messages, needs, turns);
  const changes = changesIn(wire);
  const tools = callableTools(toolsInForce(wire, changes)).map((tool) => decodeTool(asFunction(tool)));
  if (tools.length > 0) needs.add("tool", wire.tools?.length ? "tools" : (definedBy(changes)[0]?.param ?? "tools"));
  const format = decodeFormat(wire);
  if (format) needs.add("form of the answer", format.param);
  if (isPrefilled(turns)) needs.addNative(prefill, `messages[${wire.messages.length - 1}]`);
  const { choice, parallel } = decodeChoice(wire.tool_choice, tools);

  const request: InferenceRequest = {
    model: wire.model,
    stream: wire.stream === true,
    turns,
    tools,
    sampling: compact({ temperature: wire.temperature, topP: wire.top_p, topK: wire.top_k }),
    stop: wire.stop_sequences ?? [],
    stopParam: "stop_sequences",
    extra: {},
    needs: needs.list,
    nativeNeeds: needs.native,
    written: writtenOf(wire, turns, system),
    ...compact({
      toolChoice: choice,
      parallelToolCalls: parallel,
      outputTokens_max: wire.max_tokens,
      format: format?.value,
      reasoning: decodeReasoning(wire),
      // Agents put their session id here, and the requests of a session share a prefix. The key only helps to choose a
      // route.
      cacheKey: textOf(wire.metadata?.user_id) || undefined,
    }),
  };
  return withNative(request, wire, [], ["cache_control"]);
}

const prefill = "an answer that continues the last assistant message";

// ---- turns -----------------------------------------------------------------------------------------------------------

function systemTurn({ system }: MessagesInput, { keep_billing_line }: MessagesOptions): SystemTurn[] {
  const [first, ...others] = system ? textParts(system) : [];
  if (!first) return [];
  const head = keep_billing_line ? first.text : withoutBillingLine(first.text);
  const parts = head === null ? others : [head === first.text ? first : withText(first, head), ...others];
  return parts.some((part) => part.text !== "") ? [{ role: "system", parts }] : [];
}

function withText(part: TextPart, text: string): TextPart {
  const native = part.native && { native: { ...part.native, wire: { ...part.native.wire, text } } };
  return { ...part, text, ...native };
}

const messagesInStep = 4096;

/** Joins consecutive messages of one role. Tool results become turns of their own, before the other content of their message. */
function* decodeMessages(
  messages: readonly MessageParam[],
  needs: MessagesNeeds,
  turns: Turn[],
): Generator<void, void, void> {
  const lastOfUser = messages.findLastIndex(({ role }) => role === "user");
  for (let at = 0; at < messages.length; at++) {
    if (at > 0 && at % messagesInStep === 0) yield;
    const message = messages[at]!;
    if (message.role === "user") {
      const { results, parts } = userTurns(message.content, at, needs);
      // Results go before the other content of their message, even where they stand after it.
      if (results.length > 0) insertResults(turns, results);
      if (parts.length > 0) append(turns, { role: "user", parts });
    } else if (message.role === "assistant") {
      const parts = assistantParts(message.content);
      if (parts.some(isCall)) needs.addAt("call or result", at, "content");
      if (parts.length > 0) append(turns, { role: "assistant", parts });
    } else if (at > lastOfUser || message.clear_at !== "next_user_message") {
      const parts = instructions(message.content);
      if (parts.length > 0) turns.push({ role: "system", parts });
    }
  }
}

function instructions(content: SystemMessageParam["content"]): TextPart[] {
  const text = Array.isArray(content) ? content.filter((block) => block.type === "text") : (content ?? "");
  return textParts(text).filter((part) => part.text !== "");
}

function append(turns: Turn[], turn: AssistantTurn | { role: "user"; parts: InputPart[] }): void {
  const last = turns.at(-1);
  if (last?.role === "user" && turn.role === "user") last.parts.push(...turn.parts);
  else if (last?.role === "assistant" && turn.role === "assistant") last.parts.push(...turn.parts);
  else turns.push(turn);
}

function insertResults(turns: Turn[], results: ToolTurn[]): void {
  const last = turns.at(-1);
  if (last?.role === "user") turns.splice(-1, 0, ...results);
  else turns.push(...results);
}

function userTurns(content: string | readonly UserContentBlock[], messageAt: number, needs: MessagesNeeds) {
  const results: ToolTurn[] = [];
  const parts: InputPart[] = [];
  if (typeof content === "string") return { results, parts: [{ kind: "text" as const, text: content }] };
  content.forEach((block, at) => {
    const path = () => `messages[${messageAt}].content[${at}]`;
    if (block.type === "tool_result") results.push(resultTurn(block, path, needs));
    else addInput(parts, block, path, needs);
  });
  return { results, parts };
}

function resultTurn(block: ToolResultBlockParam, path: MakePath, needs: MessagesNeeds): ToolTurn {
  needs.add("call or result", path);
  const { content } = block;
  const turn: ToolTurn = { role: "tool", callId: block.tool_use_id, parts: [] };
  if (typeof content === "string") turn.parts.push({ kind: "text", text: content });
  else addInputs(turn.parts, content ?? [], () => `${path()}.content`, needs);
  if (block.is_error === true) turn.failed = true;
  return withNative(turn, block, [], ["cache_control"]);
}

/** Whether the last message begins the answer: it is the assistant's, and does not end in a call. */
function isPrefilled(turns: readonly Turn[]): boolean {
  const last = turns.at(-1);
  return last?.role === "assistant" && last.parts.at(-1)?.kind === "text";
}

// ---- tools and the rest ----------------------------------------------------------------------------------------------

const modelledOfTool = ["type", "name", "description", "input_schema", "strict"];

function decodeTool(tool: MessagesTool): Tool {
  const { name, description, input_schema: parameters, strict } = tool;
  const decoded: Tool = { kind: "function", name: name ?? "", ...compact({ description, parameters, strict }) };
  return withNative(decoded, tool, modelledOfTool, ["cache_control", "input_examples", "eager_input_streaming"]);
}

/** The choice of tools; none if there are no tools. */
function decodeChoice(choice: MessagesToolChoice | null | undefined, tools: readonly Tool[]) {
  if (!choice || tools.length === 0) return {};
  const parallel = choice.type !== "none" && choice.disable_parallel_tool_use === true ? false : undefined;
  return { choice: choiceOf(choice), parallel };
}

function choiceOf(choice: MessagesToolChoice): ToolChoice {
  if (choice.type === "tool") return { kind: "tool", name: choice.name };
  return { kind: choice.type === "any" ? "required" : choice.type };
}

/** The format of the output. In Messages it has neither a name nor a strictness: it is always strict. */
function decodeFormat(wire: MessagesInput): { value: OutputFormat; param: string } | undefined {
  const inConfig = wire.output_config?.format;
  const format = inConfig ?? wire.output_format;
  if (!format) return undefined;
  const value: OutputFormat = { kind: "json_schema", name: "output", schema: format.schema, strict: true };
  return { value, param: inConfig ? "output_config.format" : "output_format" };
}

/**
 * The caller's hints about reasoning. `disabled` overrides an effort. `adaptive` and `between_tools` leave the budget
 * to the engine.
 */
function decodeReasoning(wire: MessagesInput): Reasoning | undefined {
  const { thinking } = wire;
  const effort = effortInForce(wire);
  // For engines of this protocol, an effort alone does not switch thinking on.
  if (!thinking) return effort ? { effort, native: { protocol: "anthropic-messages", wire: {} } } : undefined;
  const budgetTokens = thinking.type === "enabled" ? thinking.budget_tokens : undefined;
  const reasoning: Reasoning = thinking.type === "disabled" ? { effort: "none" } : compact({ effort, budgetTokens });
  return withNative(reasoning, thinking, [], ["type", "budget_tokens", "display", "block_binding"]);
}

/** The effort of the last system message that sets one and has a user's message after it, or else of the request. */
function effortInForce({ messages, output_config: config }: MessagesInput) {
  let userFollows = false;
  for (let at = messages.length - 1; at >= 0; at--) {
    const message = messages[at]!;
    if (message.role === "user") userFollows = true;
    const set = message.role === "system" && userFollows ? message.output_config?.effort : undefined;
    if (set) return set;
  }
  return config?.effort;
}
