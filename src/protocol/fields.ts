/**
 * The names of a request's fields in each protocol. An engine names the field that it refuses in its own protocol; the caller
 * gets the name in theirs. A field without a row has no sure equivalent, and its name is withheld.
 */
import type { FaultDetails } from "../inference/fault.ts";
import { type Protocol, protocols } from "../inference/request.ts";
import { textOf } from "./json.ts";

/** A field that an engine named, as a fault carries it. */
export type NamedField = Required<Pick<FaultDetails, "param" | "engineProtocol">>;

type Columns<Named extends readonly string[]> = { readonly [Place in keyof Named]: string | null };
/** A column for each of `protocols`; null for one that has no such field. */
type Row = Columns<typeof protocols>;

const fields: readonly Row[] = [
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

/** The field that an engine named, if its path begins with a field of the contract. Other paths might reveal the engine. */
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

/** The name of the field in a caller's protocol. The path within a field is the same only in the same protocol. */
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
