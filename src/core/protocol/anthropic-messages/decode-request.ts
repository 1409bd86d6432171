/**
 * Turns a Messages request into an `InferenceRequest`, which is independent of protocols. It has been validated
 * (validate.ts); null means the same as absent.
 */
import type {
  InferenceRequest,
  OutputFormat,
  Reasoning,
  SystemTurn,
  TextPart,
  Tool,
  ToolChoice,
  Turn,
} from "../../inference/request.ts";
import { compact, textOf } from "../json.ts";
import { isStrict } from "../tool-schema.ts";
import type { CountTokensRequest, MessagesRequest, MessagesToolChoice } from "./contract.ts";
import { MessagesNeeds, textParts } from "./decode-blocks.ts";
import { decodeMessages } from "./decode-messages.ts";
import { withNative } from "./native.ts";
import { changesIn, definedBy, toolsInForce } from "./tool-changes.ts";
import { decodeTools } from "./tools.ts";
import { writtenOf } from "./written.ts";

export interface MessagesOptions {
  /** Whether to keep the line that Claude Code puts at the head of its system text. */
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
  const tools = decodeTools(toolsInForce(wire, changes));
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
    written: writtenOf(wire, { turns, system, tools: changes.length > 0 ? decodeTools(wire.tools ?? []) : tools }),
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

const billingLine = /^x-anthropic-billing-header:[^\n]*(\n|$)/i;

/**
 * The text without the line that Claude Code puts at its head; null if nothing else is left. The line changes with
 * every request, and so defeats prefix caches (docs/design/service.md, Billing line).
 */
function withoutBillingLine(text: string): string | null {
  if (!billingLine.test(text.slice(0, 64))) return text;
  return text.replace(billingLine, "") || null;
}

function withText(part: TextPart, text: string): TextPart {
  const native = part.native && { native: { ...part.native, wire: { ...part.native.wire, text } } };
  return { ...part, text, ...native };
}

/** Whether the last message begins the answer: it is the assistant's, and does not end in a call. */
function isPrefilled(turns: readonly Turn[]): boolean {
  const last = turns.at(-1);
  return last?.role === "assistant" && last.parts.at(-1)?.kind === "text";
}

// ---- tools and the rest ----------------------------------------------------------------------------------------------

function decodeChoice(choice: MessagesToolChoice | null | undefined, tools: readonly Tool[]) {
  if (!choice || tools.length === 0) return {};
  const parallel = choice.type !== "none" && choice.disable_parallel_tool_use === true ? false : undefined;
  return { choice: choiceOf(choice), parallel };
}

function choiceOf(choice: MessagesToolChoice): ToolChoice {
  if (choice.type === "tool") return { kind: "tool", name: choice.name };
  return { kind: choice.type === "any" ? "required" : choice.type };
}

/**
 * The format of the output. In Messages a format has neither a name nor a `strict` flag. It is taken as strict, unless
 * OpenAI's services would refuse the schema in strict mode. Self-hosted engines enforce any schema.
 */
function decodeFormat(wire: MessagesInput): { value: OutputFormat; param: string } | undefined {
  const inConfig = wire.output_config?.format;
  const format = inConfig ?? wire.output_format;
  if (!format) return undefined;
  const { schema } = format;
  const value: OutputFormat = { kind: "json_schema", name: "output", schema, strict: isStrict(schema) };
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
  const native = { protocol: "anthropic-messages", wire: {} } as const;
  const isSet = wire.messages.some((one) => one.role === "system" && one.output_config?.effort);
  if (!thinking) return effort || isSet ? { ...compact({ effort }), native } : undefined;
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
