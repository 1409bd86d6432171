/**
 * The names of a request's fields in each protocol. An engine names the field that it refuses in its own protocol; the
 * caller gets the name in the caller's protocol. A field that is not listed has no certain equivalent, and its name is
 * withheld.
 */
import type { FaultDetails } from "../inference/fault.ts";
import type { Protocol } from "../inference/request.ts";
import { textOf } from "./json.ts";

/** A field that an engine named, with the protocol of the name. */
export type NamedField = Required<Pick<FaultDetails, "param" | "engineProtocol">>;

/** The names of one field in the protocols that have it. Callers get the first name of their own protocol. */
type Names = Readonly<Partial<Record<Protocol, readonly string[]>>>;

const equivalents: readonly Names[] = [
  { "openai-chat": ["messages"], "anthropic-messages": ["messages"], "openai-responses": ["input"] },
  {
    "openai-chat": ["max_tokens", "max_completion_tokens"],
    "anthropic-messages": ["max_tokens"],
    "openai-responses": ["max_output_tokens"],
  },
  { "openai-chat": ["temperature"], "anthropic-messages": ["temperature"], "openai-responses": ["temperature"] },
  { "openai-chat": ["top_p"], "anthropic-messages": ["top_p"], "openai-responses": ["top_p"] },
  { "openai-chat": ["top_k"], "anthropic-messages": ["top_k"] },
  { "openai-chat": ["stop"], "anthropic-messages": ["stop_sequences"] },
  { "openai-chat": ["tools"], "anthropic-messages": ["tools"], "openai-responses": ["tools"] },
  { "openai-chat": ["tool_choice"], "anthropic-messages": ["tool_choice"], "openai-responses": ["tool_choice"] },
  { "openai-chat": ["parallel_tool_calls"], "openai-responses": ["parallel_tool_calls"] },
  { "openai-chat": ["response_format"], "openai-responses": ["text"] },
  { "openai-chat": ["reasoning_effort"], "openai-responses": ["reasoning"] },
  { "openai-chat": ["top_logprobs"], "openai-responses": ["top_logprobs"] },
];

/** Whether a quoted text is the path of a request field, which reveals nothing of the caller. */
export function isFieldName(path: string): boolean {
  const root = rootOf(path);
  if (root === undefined) return false;
  return moreFields.has(root) || equivalents.some((names) => Object.values(names).flat().includes(root));
}

/** Further names that may be shown from an engine's message: fields of one protocol, and words of JSON schemas. */
const moreFields: ReadonlySet<string> = new Set(
  (
    "body content role type name system stream seed logprobs reasoning_content reasoning_details tool_calls " +
    "tool_call_id function parameters json_schema schema properties required thinking cache_control output_config " +
    "input_schema image_url file extra_content frequency_penalty presence_penalty logit_bias stream_options include " +
    "store user metadata"
  ).split(" "),
);

export type FieldNamer = (path: unknown) => NamedField | undefined;

/**
 * Makes the function that reads the path of a field which an engine named: undefined unless the path begins with a
 * field that requests may have, because another path might reveal the engine.
 */
export function fieldNamer(engineProtocol: Protocol, contract: { properties: object }): FieldNamer {
  return (path) => {
    const param = textOf(path).replace(/\.(\d+)/g, "[$1]");
    const root = rootOf(param);
    if (root === undefined || root === "model" || !Object.hasOwn(contract.properties, root)) return undefined;
    return { param, engineProtocol };
  };
}

/** The field's name in a caller's protocol, with the path within it only if the engine speaks that protocol. */
export function fieldIn(protocol: Protocol, { param, engineProtocol }: NamedField): string | undefined {
  if (engineProtocol === protocol) return param;
  const root = rootOf(param);
  const names = equivalents.find((one) => root !== undefined && one[engineProtocol]?.includes(root));
  return names?.[protocol]?.[0];
}

/** The name at the beginning of a path; undefined if the text is no path. */
function rootOf(text: string): string | undefined {
  if (text.length > 128 || !/^[a-z_]+([.[][a-z0-9_\]]+)*$/.test(text)) return undefined;
  return text.split(/[.[]/)[0];
}
