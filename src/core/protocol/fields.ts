/**
 * The names of a request's fields in each protocol. An engine names the field that it refuses in its own protocol; the
 * caller gets the name in the caller's protocol. A field that is not listed has no certain equivalent, and its name is
 * withheld.
 */
import type { FaultDetails } from "../inference/fault.ts";
import type { Protocol } from "../inference/request.ts";
import { entryOf, textOf } from "./json.ts";

/** A field that an engine named, with the protocol of the name. */
export type NamedField = Required<Pick<FaultDetails, "param" | "engineProtocol">>;

/**
 * The purpose of a field, by which the fields of different protocols correspond. If the engine speaks another protocol
 * than the caller, and the caller's protocol has two fields for the purpose, the caller gets the name of the first.
 */
type Purpose =
  | "turns"
  | "outputTokens_max"
  | "temperature"
  | "topP"
  | "topK"
  | "stop"
  | "tools"
  | "toolChoice"
  | "parallelToolCalls"
  | "format"
  | "reasoning"
  | "logprobs";

const purposes: Readonly<Record<Protocol, Readonly<Partial<Record<string, Purpose>>>>> = {
  "openai-chat": {
    messages: "turns",
    max_tokens: "outputTokens_max",
    max_completion_tokens: "outputTokens_max",
    temperature: "temperature",
    top_p: "topP",
    top_k: "topK",
    stop: "stop",
    tools: "tools",
    tool_choice: "toolChoice",
    parallel_tool_calls: "parallelToolCalls",
    response_format: "format",
    reasoning_effort: "reasoning",
    top_logprobs: "logprobs",
  },
  "anthropic-messages": {
    messages: "turns",
    max_tokens: "outputTokens_max",
    temperature: "temperature",
    top_p: "topP",
    top_k: "topK",
    stop_sequences: "stop",
    tools: "tools",
    tool_choice: "toolChoice",
  },
  "openai-responses": {
    input: "turns",
    max_output_tokens: "outputTokens_max",
    temperature: "temperature",
    top_p: "topP",
    tools: "tools",
    tool_choice: "toolChoice",
    parallel_tool_calls: "parallelToolCalls",
    text: "format",
    reasoning: "reasoning",
    top_logprobs: "logprobs",
  },
};

/** Whether a quoted text is the path of a request field, which reveals nothing of the caller. */
export function isFieldName(path: string): boolean {
  if (path.length > 128 || !/^[a-z_]+([.[][a-z0-9_\]]+)*$/.test(path)) return false;
  const root = rootOf(path);
  return moreFields.has(root) || Object.values(purposes).some((fields) => Object.hasOwn(fields, root));
}

/**
 * Further names that may be shown from an engine's message: fields without an equivalent in other protocols, and words
 * of JSON schemas.
 */
const moreFields: ReadonlySet<string> = new Set([
  ...["body", "content", "role", "type", "name", "system", "stream", "seed", "logprobs", "reasoning_content"],
  ...[
    "reasoning_details",
    "tool_calls",
    "tool_call_id",
    "function",
    "parameters",
    "json_schema",
    "schema",
    "properties",
  ],
  ...["required", "thinking", "cache_control", "output_config", "input_schema", "image_url", "file", "extra_content"],
  ...["frequency_penalty", "presence_penalty", "logit_bias", "stream_options", "include", "store", "user", "metadata"],
]);

/**
 * The field that an engine named, if its path begins with a field that requests may have. Other paths might reveal the
 * engine.
 */
export function namedField(
  engineProtocol: Protocol,
  contract: { properties: object },
  path: unknown,
): NamedField | undefined {
  const param = textOf(path).replace(/\.(\d+)/g, "[$1]");
  if (param.length > 128 || !/^[a-z_]+([.[][a-z0-9_\]]+)*$/.test(param)) return undefined;
  const root = rootOf(param);
  return root !== "model" && Object.hasOwn(contract.properties, root) ? { param, engineProtocol } : undefined;
}

/**
 * The field's name in a caller's protocol. The path within the field is kept only if the engine speaks the same
 * protocol.
 */
export function fieldIn(protocol: Protocol, { param, engineProtocol }: NamedField): string | undefined {
  if (engineProtocol === protocol) return param;
  const purpose = entryOf(purposes[engineProtocol], rootOf(param));
  if (purpose === undefined) return undefined;
  return Object.entries(purposes[protocol]).find(([, other]) => other === purpose)?.[0];
}

function rootOf(path: string): string {
  return path.split(/[.[]/)[0] ?? "";
}
