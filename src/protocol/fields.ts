/**
 * The fields of a request as each protocol names them. An engine that refuses one names it in its own words, and the caller
 * reads it in theirs, or not at all: a field that stands in no row has no certain name in the other protocols.
 */
import type { FaultDetails } from "../inference/fault.ts";
import { type Protocol, protocols } from "../inference/request.ts";
import { textOf } from "./json.ts";

/** A field that an engine named, as a fault carries it. */
export type NamedField = Required<Pick<FaultDetails, "param" | "engineProtocol">>;

/** A column for each of `protocols`. Where a row is shorter, or has null, the protocol has no such field. */
const fields: readonly (readonly (string | null)[])[] = [
  ["messages", "messages", "input"],
  ["max_tokens", "max_tokens", "max_output_tokens"],
  ["max_completion_tokens", "max_tokens", "max_output_tokens"],
  ["temperature", "temperature", "temperature"],
  ["top_p", "top_p", "top_p"],
  ["top_k", "top_k", null],
  ["stop", "stop_sequences", null],
  ["tools", "tools", "tools"],
  ["tool_choice", "tool_choice", "tool_choice"],
  ["parallel_tool_calls", null, "parallel_tool_calls"],
  ["response_format", null, "text"],
  ["reasoning_effort", null, "reasoning"],
  ["top_logprobs", null, "top_logprobs"],
];

/** A path that begins with a field of the contract may be named; anything else might be the engine's own word. */
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

/** The same field in a caller's words. What lies within a field is named and counted alike only in the same protocol. */
export function fieldIn(protocol: Protocol, { param, engineProtocol }: NamedField): string | undefined {
  if (engineProtocol === protocol) return param;
  const root = rootOf(param);
  return fields.find((row) => row[columnOf(engineProtocol)] === root)?.[columnOf(protocol)] ?? undefined;
}

function columnOf(protocol: Protocol): number {
  return protocols.indexOf(protocol);
}

function rootOf(path: string): string {
  return path.split(/[.[]/)[0] ?? "";
}
