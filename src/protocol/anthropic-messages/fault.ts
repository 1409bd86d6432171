/** Faults, both ways: ours in the Messages envelope, and an engine's refusal as a fault that tells nothing of the engine. */
import { type Fault, faultCatalogue } from "../../inference/fault.ts";
import { faultMessage } from "../fault-message.ts";
import { type NamedField, namedField } from "../fields.ts";
import { entryOf, type JsonObject, textOf } from "../json.ts";
import { errorOf, refusalFault } from "../refusal.ts";
import { MessagesRequest as contract, type MessagesError } from "./contract.ts";

/** The envelope has no place for a path, so the message begins with it; our code stands in `details.error_code`. */
export function encodeFault(fault: Fault, requestId: string): MessagesError {
  return {
    type: "error",
    error: {
      type: faultCatalogue[fault.code].messages,
      message: messageOf(fault),
      details: { error_code: fault.code, ...fault.details.body },
    },
    request_id: requestId,
  };
}

/** Claude Code's pattern for an input that is too long is these words from end to end; it reads both numbers from them. */
function messageOf(fault: Fault): string {
  const { inputTokens, contextTokens } = fault.details.overflow ?? {};
  if (inputTokens !== undefined && contextTokens !== undefined)
    return `prompt is too long: ${inputTokens} tokens > ${contextTokens} maximum`;
  const { message, param } = faultMessage("anthropic-messages", fault);
  return pathFirst(message, param);
}

/** `'a.b' must be …` is said of the path already, and becomes `a.b: must be …`. */
function pathFirst(message: string, param: string | undefined): string {
  if (!param) return message;
  const named = `'${param}' `;
  return `${param}: ${message.startsWith(named) ? message.slice(named.length) : message}`;
}

/** What an engine's refusal means to the caller; its words never pass (refusal.ts). */
export function decodeFault(status: number, body: unknown): Fault {
  const error = errorOf(body);
  return refusalFault(status, error, refusedField(error));
}

/** The envelope has no place for a path: the message begins with it, or with a field in backticks. */
function refusedField(error: JsonObject): NamedField | undefined {
  const [, path, field] = /^(?:([a-z_][a-z0-9_.[\]]{0,127}):|`([a-z_]+)`) /.exec(textOf(error.message)) ?? [];
  return namedField("anthropic-messages", contract, error.param ?? path ?? field);
}

/** An error where an answer should stand has no status; its type stands for one. */
export function decodeErrorEvent(body: unknown): Fault {
  return decodeFault(entryOf(statuses, textOf(errorOf(body).type)) ?? 500, body);
}

const statuses: Partial<Record<string, number>> = {
  invalid_request_error: 400,
  authentication_error: 401,
  billing_error: 402,
  permission_error: 403,
  not_found_error: 404,
  request_too_large: 413,
  rate_limit_error: 429,
  timeout_error: 504,
  overloaded_error: 529,
};
