/**
 * Writes a request for an engine that speaks Responses. A feature that would change the answer and that the protocol
 * cannot express is refused with an error that names the feature; a feature that only tunes the answer (`seed`) is left
 * out. The body has no nulls, the engine is told to store nothing, and equal requests have equal bytes.
 */
import type { Fault } from "../../inference/fault.ts";
import type { InferenceRequest, InputPart, OutputFormat, Reasoning, Tool, Turn } from "../../inference/request.ts";
import { headInstructions } from "../../inference/turns.ts";
import type { UpstreamAsk } from "../codec.ts";
import type { Dialect } from "../dialect.ts";
import { dialects } from "../dialects.ts";
import {
  allowedTools,
  beyondBounds,
  effortOf,
  foreignNeed,
  paramOf,
  refusedTuning,
  unsupportedByEngine,
} from "../engine-options.ts";
import { compact, isObject, type JsonObject, textOf } from "../json.ts";
import { mended } from "../tool-schema.ts";
import { encodeTurns } from "./encode-turns.ts";
import { wireOf } from "./native.ts";

export function unsupportedByResponses(request: InferenceRequest, dialect: Dialect = dialects.generic): Fault | null {
  const { sampling, stop, stopParam = "stop", turns } = request;
  if (stop.length > 0) return unsupportedByEngine("stop sequences", stopParam);
  if (sampling.topK !== undefined) return unsupportedByEngine("top_k", "top_k");
  const tuning = refusedTuning(sampling);
  if (tuning) return tuning;
  if (turns.some(hasAudio)) return unsupportedByEngine("audio input", paramOf(request, "audio_input"));
  return foreignNeed(request, "openai-responses") ?? beyondBounds(request, dialect);
}

const isAudio = ({ kind }: InputPart) => kind === "audio";
const hasAudio = (turn: Turn) => turn.role === "user" && turn.parts.some(isAudio);

export function encodeRequest(request: InferenceRequest, ask: UpstreamAsk): JsonObject {
  const { dialect = dialects.generic } = ask;
  const refusal = unsupportedByResponses(request, dialect);
  if (refusal) throw refusal;
  const { sampling } = request;
  const { parts, rest } = headInstructions(request.turns);
  const { tools, choice, named, parallel } = allowedTools(request, dialect, isFunction);
  return {
    model: ask.model,
    instructions: rest.length > 0 && parts.length > 0 ? parts.map((part) => part.text).join("\n\n") : undefined,
    // If there are only instructions, they are sent as the user's message.
    input: encodeTurns(rest.length > 0 ? rest : [{ role: "user", parts }], ask),
    stream: ask.stream,
    store: false,
    include: included(request),
    max_output_tokens: request.outputTokens_max,
    temperature: sampling.temperature,
    top_p: sampling.topP,
    tools: tools.length > 0 ? encodeTools(tools, dialect) : undefined,
    tool_choice: named ? { type: "function", name: nameSent(tools, named) } : tools.length > 0 ? choice : undefined,
    parallel_tool_calls: tools.length > 0 ? parallel : undefined,
    text: request.format && { format: encodeFormat(request.format) },
    reasoning: request.reasoning && encodeReasoning(request.reasoning, dialect),
    top_logprobs: request.logprobs?.top || undefined,
    ...request.extra,
  };
}

/**
 * OpenAI refuses to encrypt the reasoning of a model that does not reason, so encrypted reasoning is requested only
 * from models that do.
 */
function included({ reasoning, logprobs }: InferenceRequest): string[] | undefined {
  const include = [
    ...(reasoning ? ["reasoning.encrypted_content"] : []),
    ...(logprobs ? ["message.output_text.logprobs"] : []),
  ];
  return include.length > 0 ? include : undefined;
}

/** Writes the tools. The tools of one namespace become one wire tool, at the position of the first of them. */
function encodeTools(tools: readonly Tool[], dialect: Dialect): Readonly<JsonObject>[] {
  const out: Readonly<JsonObject>[] = [];
  const namespaces = new Map<unknown, JsonObject & { tools: unknown[] }>();
  for (const tool of tools) {
    const wire = wireOf(tool.native);
    const inner = wire?.type === "namespace" && Array.isArray(wire.tools) ? wire.tools : null;
    const earlier = inner && namespaces.get(wire?.name);
    if (earlier) earlier.tools.push(...(inner ?? []));
    else if (wire && inner) {
      const first = { ...wire, tools: [...inner] };
      namespaces.set(wire.name, first);
      out.push(first);
    } else out.push(wire ? withMended(withoutNulls(wire), dialect) : encodeTool(tool, dialect));
  }
  return out;
}

/** The name under which a tool is sent: the caller's own, if the caller speaks this protocol. */
function nameSent(tools: readonly Tool[], name: string): string {
  return textOf(wireOf(tools.find((tool) => tool.name === name)?.native)?.name) || name;
}

/** Whether the tool is a plain function. Custom tools and tools of a namespace cannot be chosen by a plain name. */
function isFunction({ native }: Tool): boolean {
  return (wireOf(native)?.type ?? "function") === "function";
}

function withMended(wire: Readonly<JsonObject>, { schemas }: Dialect): Readonly<JsonObject> {
  return schemas === "mended" && isObject(wire.parameters) ? { ...wire, parameters: mended(wire.parameters) } : wire;
}

function withoutNulls(wire: Readonly<JsonObject>): Readonly<JsonObject> {
  if (!Object.values(wire).includes(null)) return wire;
  return Object.fromEntries(Object.entries(wire).filter(([, value]) => value !== null));
}

/** `strict` is always sent, because only in this protocol is it true by default. */
function encodeTool({ name, description, parameters, strict }: Tool, { schemas }: Dialect): JsonObject {
  const schema = parameters ?? { type: "object", properties: {} };
  return {
    type: "function",
    name,
    description,
    parameters: schemas === "mended" ? mended(schema) : schema,
    strict: strict ?? false,
  };
}

function encodeFormat(format: OutputFormat): JsonObject {
  if (format.kind === "json_object") return { type: "json_object" };
  const { name, schema, strict, description } = format;
  return { type: "json_schema", name, description, schema: schema ?? {}, strict: strict ?? false };
}

/**
 * Writes the `reasoning` object of a caller that speaks Responses, or else an effort that all engines know. Callers of
 * other protocols get the text of reasoning, unless they ask to have it omitted.
 */
function encodeReasoning(reasoning: Reasoning, dialect: Dialect): JsonObject | undefined {
  const wire = wireOf(reasoning.native);
  if (wire) return { ...wire };
  const effort = effortOf(reasoning, dialect);
  const isSeen = dialect.summarizes && reasoning.effort !== "none" && reasoning.native?.wire.display !== "omitted";
  return effort === undefined && !isSeen ? undefined : compact({ effort, summary: isSeen ? "auto" : undefined });
}
