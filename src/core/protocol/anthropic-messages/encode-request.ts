/**
 * Writes a request for an engine that speaks Messages. A request is refused if it has a feature that would change the
 * answer and that the protocol cannot express; the refusal names the feature. A feature that only tunes the answer
 * (`seed`) is left out. The body has no nulls, and equal requests have equal bytes.
 */
import type { Fault } from "../../inference/fault.ts";
import type {
  Capability,
  InferenceRequest,
  InputPart,
  OutputFormat,
  Reasoning,
  Tool,
  ToolChoice,
  Turn,
} from "../../inference/request.ts";
import { headInstructions } from "../../inference/turns.ts";
import type { UpstreamAsk } from "../codec.ts";
import type { Dialect } from "../dialect.ts";
import { dialects } from "../dialects.ts";
import { beyondBounds, foreignNeed, paramOf, refusedTuning, unsupportedByEngine } from "../engine-options.ts";
import type { JsonObject } from "../json.ts";
import { encodeTurns, textBlocks } from "./encode-turns.ts";
import { fitted } from "./fitting.ts";
import { documentSource, imageSource } from "./media.ts";
import { wireOf } from "./native.ts";
import { stripped } from "./strips.ts";
import { encodeTool } from "./tools.ts";
import { writtenConversation } from "./written.ts";

export function unsupportedByMessages(request: InferenceRequest, dialect: Dialect = dialects.generic): Fault | null {
  const { sampling, logprobs, format, needs } = request;
  const tuning = refusedTuning(sampling);
  if (tuning) return tuning;
  if ((sampling.temperature ?? 0) > 1) return unsupportedByEngine("a temperature above 1", "temperature");
  if (logprobs) return unsupportedByEngine("log probabilities", paramOf(request, "logprobs", "logprobs"));
  if (format?.kind === "json_object")
    return unsupportedByEngine("JSON without a schema", paramOf(request, "structured_output", "response_format"));
  const media = needs.some(isMedium) ? firstMedium(request.turns) : null;
  return media
    ? unsupportedByEngine(media.feature, paramOf(request, media.capability))
    : (foreignNeed(request, "anthropic-messages") ?? beyondBounds(request, dialect));
}

const mediaCapabilities: ReadonlySet<Capability> = new Set(["vision", "files", "audio_input"] as const);
const isMedium = ({ capability }: InferenceRequest["needs"][number]) => mediaCapabilities.has(capability);

function firstMedium(turns: readonly Turn[]): { feature: string; capability: Capability } | null {
  for (const turn of turns) {
    if (turn.role !== "user" && turn.role !== "tool") continue;
    for (const part of turn.parts) {
      const found = refusedMedium(part);
      if (found) return found;
    }
  }
  return null;
}

function refusedMedium(part: InputPart): { feature: string; capability: Capability } | null {
  if (part.kind === "audio") return { feature: "audio input", capability: "audio_input" };
  if (part.kind === "image" && !imageSource(part.url))
    return { feature: "a data: URL that is not an image in base64", capability: "vision" };
  if (part.kind === "file" && !documentSource(part))
    return { feature: "a file that is neither a PDF nor plain text", capability: "files" };
  return null;
}

export function encodeRequest(asked: InferenceRequest, ask: UpstreamAsk): JsonObject {
  const { dialect = dialects.generic } = ask;
  const refusal = unsupportedByMessages(asked, dialect);
  if (refusal) throw refusal;
  const request = dialect.wholeMessages && !asked.written ? fitted(asked, ask.lost) : asked;
  const { sampling } = request;
  const { tools, choice } = allowed(request);
  const conversation = writtenConversation(request, ask) ?? conversationOf(request, tools, ask);
  const max_tokens = request.outputTokens_max ?? ask.outputTokens_max;
  const body: JsonObject = {
    model: ask.model,
    max_tokens,
    system: encodeSystem(conversation.system),
    messages: conversation.messages,
    tools: conversation.tools.length > 0 ? conversation.tools : undefined,
    tool_choice: tools.length > 0 ? encodeChoice(choice, request.parallelToolCalls) : undefined,
    stream: ask.stream,
    stop_sequences: request.stop.length > 0 ? request.stop : undefined,
    temperature: sampling.temperature,
    top_p: sampling.topP,
    top_k: sampling.topK,
    thinking: request.reasoning && encodeThinking(request.reasoning, max_tokens, dialect),
    output_config: encodeConfig(request, conversation),
    ...request.extra,
    ...wireOf(request.native),
  };
  return stripped(body, dialect, ask.lost);
}

function conversationOf({ turns, reasoning }: InferenceRequest, tools: readonly Tool[], ask: UpstreamAsk) {
  const { parts, rest } = headInstructions(turns);
  const encoded = tools.map((tool) => encodeTool(tool));
  const effort = reasoning?.effort && levels[reasoning.effort];
  if (rest.length > 0) return { system: textBlocks(parts), messages: encodeTurns(rest, ask), tools: encoded, effort };
  // If there are only instructions, they are sent as the user's message.
  return { system: [], messages: encodeTurns([{ role: "user", parts }], ask), tools: encoded, effort };
}

/** The system text of a request. A single plain text becomes a string, as most callers write it. */
function encodeSystem(blocks: readonly Readonly<JsonObject>[]): unknown {
  const only = blocks.length === 1 ? blocks[0] : undefined;
  if (blocks.length === 0) return undefined;
  return only && Object.keys(only).length === 2 ? only.text : blocks;
}

// ---- tools -----------------------------------------------------------------------------------------------------------

/**
 * The tools and the tool choice that an engine gets. Engines do not know `allowed_tools`, which is a hard constraint:
 * they get only the allowed tools.
 */
function allowed({ tools, toolChoice }: InferenceRequest) {
  if (toolChoice?.kind !== "allowed") return { tools, choice: toolChoice };
  const names = new Set(toolChoice.names);
  const choice: ToolChoice = { kind: toolChoice.mode };
  return { tools: tools.filter((tool) => names.has(tool.name)), choice };
}

function encodeChoice(choice: ToolChoice | undefined, parallel: boolean | undefined): JsonObject | undefined {
  const alone = parallel === false ? { disable_parallel_tool_use: true } : {};
  switch (choice?.kind) {
    case "none":
      return { type: "none" };
    case "required":
      return { type: "any", ...alone };
    case "tool":
      return { type: "tool", name: choice.name, ...alone };
    case "auto":
      return { type: "auto", ...alone };
    default:
      return parallel === false ? { type: "auto", ...alone } : undefined;
  }
}

// ---- reasoning and format --------------------------------------------------------------------------------------------

const budget_min = 1024;

/**
 * `thinking` as the caller wrote it, with a budget below the cap on output. If the cap is too low for any budget,
 * thinking is disabled.
 */
function encodeThinking(
  { effort, native }: Reasoning,
  max_tokens: number,
  { wholeMessages }: Dialect,
): JsonObject | undefined {
  const written = wireOf(native);
  if (!written) {
    if (effort === undefined) return undefined;
    // Newer models omit the text of their thinking by default. A summary of the thinking is not charged for.
    return effort === "none" ? { type: "disabled" } : { type: "adaptive", display: "summarized" };
  }
  if (written.type === undefined) return undefined;
  const { block_binding: _, ...common } = written;
  const wire = wholeMessages ? { ...written } : common;
  if (typeof wire.budget_tokens !== "number" || wire.budget_tokens < max_tokens) return wire;
  return max_tokens > budget_min ? { ...wire, budget_tokens: max_tokens - 1 } : { type: "disabled" };
}

/**
 * The field `output_config`. In a conversation that is sent as its caller wrote it, system messages also set the
 * effort.
 */
function encodeConfig(
  { reasoning, format }: InferenceRequest,
  { effort }: { effort: unknown },
): JsonObject | undefined {
  const isHeeded = effort && reasoning && reasoning.effort !== "none";
  const config = { ...(isHeeded ? { effort } : {}), ...(format ? { format: encodeFormat(format) } : {}) };
  return Object.keys(config).length > 0 ? config : undefined;
}

/** The value in Messages for each level of effort. `none` is expressed by `thinking` instead. */
const levels = {
  none: undefined,
  minimal: "low",
  low: "low",
  medium: "medium",
  high: "high",
  xhigh: "xhigh",
  max: "max",
} as const;

function encodeFormat(format: OutputFormat): JsonObject {
  return { type: "json_schema", schema: format.kind === "json_schema" ? (format.schema ?? {}) : {} };
}
