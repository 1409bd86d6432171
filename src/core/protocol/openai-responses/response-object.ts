/**
 * Makes Response objects. They always have every key that OpenAI and Open Responses require, because in SDKs the last
 * object of a stream replaces all earlier ones.
 */
import type { StopReason } from "../../inference/event.ts";
import type { Usage } from "../../inference/usage.ts";
import type { ResponseIdentity } from "../codec.ts";
import { isObject, type JsonObject } from "../json.ts";
import type { OutputItem, ResponseFailure, ResponseObject, ResponsesRequest, ResponsesTool } from "./contract.ts";
import { summaryWish } from "./decode-request.ts";
import { isHosted } from "./tools.ts";
import { encodeUsage } from "./usage.ts";

/** The response before it has any output: the parameters of the request, with their defaults. */
export function begunResponse(wire: ResponsesRequest, identity: ResponseIdentity): ResponseObject {
  // Keys that are accepted but have no effect are not declared in the request's type. The response repeats them if
  // their values have the right type.
  const { metadata, safety_identifier: safety, max_tool_calls: calls } = wire as JsonObject;
  return {
    id: identity.responseId,
    object: "response",
    created_at: identity.createdAtSeconds,
    completed_at: null,
    status: "in_progress",
    error: null,
    incomplete_details: null,
    model: identity.model,
    output: [],
    usage: null,
    previous_response_id: wire.previous_response_id ?? null,
    instructions: wire.instructions ?? null,
    tools: (wire.tools ?? []).filter((tool) => !isHosted(tool)).map(publicTool),
    tool_choice: wire.tool_choice ?? "auto",
    parallel_tool_calls: wire.parallel_tool_calls ?? true,
    max_output_tokens: wire.max_output_tokens ?? null,
    max_tool_calls: Number.isInteger(calls) ? Number(calls) : null,
    temperature: wire.temperature ?? 1,
    top_p: wire.top_p ?? 1,
    presence_penalty: 0,
    frequency_penalty: 0,
    top_logprobs: wire.top_logprobs ?? 0,
    text: { ...wire.text, format: wire.text?.format ?? { type: "text" } },
    reasoning: { effort: wire.reasoning?.effort ?? null, summary: summaryWish(wire) },
    truncation: "disabled",
    store: wire.store ?? true,
    background: wire.background === true,
    service_tier: "default",
    metadata: isObject(metadata) ? metadata : {},
    safety_identifier: typeof safety === "string" ? safety : null,
    prompt_cache_key: wire.prompt_cache_key ?? null,
  };
}

function publicTool(tool: ResponsesTool): JsonObject {
  if (tool.type !== "function") return { ...tool };
  return {
    ...tool,
    description: tool.description ?? null,
    parameters: tool.parameters ?? null,
    strict: tool.strict ?? null,
  };
}

type Ending = { status: "completed" } | { status: "incomplete"; reason: "max_output_tokens" | "content_filter" };
export type Outcome = Ending | { status: "failed"; error: ResponseFailure };

export function outcomeOf(stop: StopReason): Ending {
  if (stop === "length") return { status: "incomplete", reason: "max_output_tokens" };
  return stop === "content_filter" ? { status: "incomplete", reason: stop } : { status: "completed" };
}

export interface Ended {
  output: OutputItem[];
  usage: Usage | null;
  outcome: Outcome;
  atSeconds: number | undefined;
}

export function endedResponse(begun: ResponseObject, { output, usage, outcome, atSeconds }: Ended): ResponseObject {
  return {
    ...begun,
    // Null if the answer was cut short or failed, as in OpenAI's own responses.
    completed_at: outcome.status === "completed" ? (atSeconds ?? null) : null,
    status: outcome.status,
    error: outcome.status === "failed" ? outcome.error : null,
    incomplete_details: outcome.status === "incomplete" ? { reason: outcome.reason } : null,
    output,
    usage: usage && encodeUsage(usage),
  };
}
