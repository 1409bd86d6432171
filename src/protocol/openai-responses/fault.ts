/** Writes faults in OpenAI's envelope and in `response.failed`, and turns an engine's refusal into a fault. */
import type { Fault, FaultCode } from "../../inference/fault.ts";
import type { Dialect } from "../dialect.ts";
import { dialects } from "../dialects.ts";
import { envelopeOf, messageIn } from "../envelope/encode.ts";
import { namedField } from "../fields.ts";
import { entryOf, type JsonObject, textOf } from "../json.ts";
import { errorOf, refusalFault } from "../refusal.ts";
import { ResponsesRequest as contract, type ResponseFailure, type ResponsesError } from "./contract.ts";

export function encodeFault(fault: Fault, requestId: string): ResponsesError {
  const { error } = envelopeOf(fault, requestId, "openai-responses");
  // By this type, Codex stops at once and shows the limit.
  const type = fault.code === "usage_limit_reached" ? fault.code : error.type;
  return { error: { ...error, type, param: paramOf(error) } };
}

/** Faults of the whole conversation have its name in chat completions. */
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

/** Turns an engine's refusal into a fault (refusal.ts). */
export function decodeFault(status: number, body: unknown, dialect: Dialect = dialects.generic): Fault {
  return refusalOf(status, errorOf(body), dialect);
}

/** Turns an error inside an answer into a fault. It has no status, which is derived from its code or its type. */
export function decodeFailure(value: unknown, dialect: Dialect): Fault {
  const error = errorOf(value);
  const status =
    entryOf(statuses, textOf(error.code)) ??
    entryOf(statuses, textOf(error.type)) ??
    Number(error.code ?? error.status);
  return refusalOf(status >= 400 && status < 600 ? status : 500, error, dialect);
}

function refusalOf(status: number, error: JsonObject, { refusals }: Dialect): Fault {
  return refusalFault(status, error, refusals, namedField("openai-responses", contract, error.param), named);
}

const statuses: Partial<Record<string, number>> = {
  invalid_prompt: 400,
  invalid_request_error: 400,
  context_length_exceeded: 400,
  authentication_error: 401,
  // This is the operator's quota, not the caller's.
  insufficient_quota: 403,
  permission_error: 403,
  rate_limit_exceeded: 429,
  rate_limit_error: 429,
  server_error: 500,
  server_is_overloaded: 503,
  slow_down: 503,
};

function named(path: string) {
  return namedField("openai-responses", contract, path);
}
