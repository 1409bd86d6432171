/** Writes faults in OpenAI's envelope and in `response.failed`, and turns an engine's refusal into a fault. */
import type { Fault, FaultCode } from "../../inference/fault.ts";
import type { Dialect } from "../dialect.ts";
import { dialects } from "../dialects.ts";
import { envelopeOf, messageIn } from "../envelope/encode.ts";
import { fieldNamer } from "../fields.ts";
import type { JsonObject } from "../json.ts";
import { errorOf, refusalFault, statusWithin } from "../refusal.ts";
import { ResponsesRequest as contract, type ResponseFailure, type ResponsesError } from "./contract.ts";

export function encodeFault(fault: Fault, requestId: string): ResponsesError {
  const { error } = envelopeOf(fault, requestId, "openai-responses");
  // For the type `usage_limit_reached`, Codex does not try again, and shows the limit.
  const type = fault.code === "usage_limit_reached" ? fault.code : error.type;
  return { error: { ...error, type, param: paramOf(error) } };
}

/**
 * The field that a fault names. The whole conversation, which the fault calls `messages` as in chat completions, is
 * `input` here.
 */
function paramOf({ param }: ResponsesError["error"]): string | null {
  return param === "messages" ? "input" : param;
}

/** Writes a fault inside a stream. Codex decides by its code whether to try again, and reads the wait from its message. */
export function encodeFailure(fault: Fault, requestId: string): ResponseFailure {
  const code = failureCodes[fault.code] ?? (fault.status === 400 ? "invalid_prompt" : "server_error");
  const wait = fault.details.retryAfterSeconds;
  const message = messageIn("openai-responses", fault);
  const advice = code === "rate_limit_exceeded" && wait !== undefined ? ` Please try again in ${wait}s.` : "";
  return { code, message: message + advice, request_id: requestId };
}

const failureCodes: Partial<Record<FaultCode, ResponseFailure["code"]>> = {
  context_length_exceeded: "context_length_exceeded",
  usage_limit_reached: "insufficient_quota",
  no_active_plan: "insufficient_quota",
  rate_limit_exceeded: "rate_limit_exceeded",
  concurrency_limit_exceeded: "rate_limit_exceeded",
  usage_reserved: "rate_limit_exceeded",
  capacity_exceeded: "rate_limit_exceeded",
};

export function decodeFault(status: number, body: unknown, dialect: Dialect = dialects.generic): Fault {
  return refusalOf(status, errorOf(body), dialect);
}

/** Turns an error inside an answer into a fault. */
export function decodeFailure(value: unknown, dialect: Dialect): Fault {
  const error = errorOf(value);
  return refusalOf(statusWithin(error), error, dialect);
}

function refusalOf(status: number, error: JsonObject, { refusals }: Dialect): Fault {
  return refusalFault(status, error, refusals, named);
}

const named = fieldNamer("openai-responses", contract);
