/** Writes faults in the Messages envelope, and turns an engine's refusal into a fault that reveals nothing of the engine. */
import { type Fault, faultCatalogue } from "../../inference/fault.ts";
import type { Dialect } from "../dialect.ts";
import { dialects } from "../dialects.ts";
import { faultMessage } from "../fault-message.ts";
import { fieldNamer, type NamedField } from "../fields.ts";
import { entryOf, type JsonObject, textOf } from "../json.ts";
import { errorOf, refusalFault } from "../refusal.ts";
import { MessagesRequest as contract, type MessagesError } from "./contract.ts";

/**
 * Writes a fault in the envelope, which has no field for a path, so the message begins with the path. This service's
 * own code is in `details.error_code`.
 */
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

/**
 * The message of a fault. Claude Code recognises an input that is too long by this exact text, and reads both numbers
 * in it.
 */
function messageOf(fault: Fault): string {
  const { inputTokens, contextTokens } = fault.details.overflow ?? {};
  if (inputTokens !== undefined && contextTokens !== undefined)
    return `prompt is too long: ${inputTokens} tokens > ${contextTokens} maximum`;
  const { message, param } = faultMessage("anthropic-messages", fault);
  return pathFirst(message, param);
}

/** Puts the path first: `'a.b' must be …` becomes `a.b: must be …`. */
function pathFirst(message: string, param: string | undefined): string {
  if (!param) return message;
  const named = `'${param}' `;
  return `${param}: ${message.startsWith(named) ? message.slice(named.length) : message}`;
}

export function decodeFault(status: number, body: unknown, { refusals }: Dialect = dialects.generic): Fault {
  const error = errorOf(body);
  return refusalFault(status, error, refusals, named, refusedField(error));
}

const named = fieldNamer("anthropic-messages", contract);

/** The field that the engine blames: the path at the beginning of its message, or a field in backticks. */
function refusedField(error: JsonObject): NamedField | undefined {
  const [, path, field] = /^(?:([a-z_][a-z0-9_.[\]]{0,127}):|`([a-z_]+)`) /.exec(textOf(error.message)) ?? [];
  return named(error.param ?? path ?? field);
}

/** The fault that stands for an error inside an answer. Such an error has no status; one is derived from its type. */
export function decodeErrorEvent(body: unknown, dialect: Dialect): Fault {
  return decodeFault(entryOf(statuses, textOf(errorOf(body).type)) ?? 500, body, dialect);
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
