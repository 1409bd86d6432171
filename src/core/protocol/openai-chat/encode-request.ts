/**
 * Writes a chat completion request for an engine, with the field names of its dialect, without nulls, and without
 * fields that only OpenAI's own service reads. Equal requests have equal bytes.
 */
import type { Fault } from "../../inference/fault.ts";
import type { InferenceRequest, OutputFormat, Tool } from "../../inference/request.ts";
import type { UpstreamAsk } from "../codec.ts";
import type { Dialect } from "../dialect.ts";
import { dialects } from "../dialects.ts";
import { beyondBounds } from "../engine-bounds.ts";
import { allowedTools, effortOf } from "../engine-options.ts";
import { mended } from "../tool-schema.ts";
import { foreignNeed } from "../unsupported.ts";
import { encodeTurns } from "./encode-turns.ts";

export function unsupportedByChat(request: InferenceRequest, dialect: Dialect = dialects.generic): Fault | null {
  return foreignNeed(request, "openai-chat") ?? beyondBounds(request, dialect);
}

export function encodeRequest(request: InferenceRequest, ask: UpstreamAsk): Record<string, unknown> {
  const { dialect = dialects.generic } = ask;
  const refusal = unsupportedByChat(request, dialect);
  if (refusal) throw refusal;
  const { sampling } = request;
  const { tools, choice, named, parallel } = allowedTools(request, dialect);
  return {
    model: ask.model,
    messages: encodeTurns(request.turns, ask, request.model),
    stream: ask.stream,
    // Usage is always requested, because the service meters by it.
    stream_options: ask.stream ? { include_usage: true } : undefined,
    [dialect.cap]: request.outputTokens_max,
    temperature: sampling.temperature,
    top_p: sampling.topP,
    top_k: sampling.topK,
    frequency_penalty: sampling.frequencyPenalty,
    presence_penalty: sampling.presencePenalty,
    seed: sampling.seed,
    logit_bias: sampling.logitBias,
    stop: request.stop.length > 0 ? request.stop : undefined,
    tools: tools.length > 0 ? tools.map((tool) => encodeTool(tool, dialect)) : undefined,
    tool_choice: named ? { type: "function", function: { name: named } } : tools.length > 0 ? choice : undefined,
    parallel_tool_calls: tools.length > 0 ? parallel : undefined,
    response_format: request.format && encodeFormat(request.format),
    reasoning_effort: request.reasoning && effortOf(request.reasoning, dialect),
    logprobs: request.logprobs ? true : undefined,
    top_logprobs: request.logprobs?.top || undefined,
    // These are the names in vLLM and SGLang. vLLM refuses one of these fields without the other.
    continue_final_message: request.continues || undefined,
    add_generation_prompt: request.continues ? false : undefined,
    ...request.extra,
  };
}

function encodeTool({ name, description, parameters: given, strict }: Tool, { schemas }: Dialect): unknown {
  const parameters = given && schemas === "mended" ? mended(given) : given;
  return { type: "function", function: { name, description, parameters, strict } };
}

function encodeFormat(format: OutputFormat): unknown {
  if (format.kind === "json_object") return { type: "json_object" };
  const { name, schema, strict, description } = format;
  return { type: "json_schema", json_schema: { name, description, schema, strict } };
}
