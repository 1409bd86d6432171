/** The meaning of every fault code, in one line for people, and the headers and bodies of error answers. */
import type { TSchema } from "typebox";
import { type FaultCode, faultCatalogue, statusOf } from "../../core/inference/fault.ts";
import { retirementHeaderNames } from "../../core/operations/headers.ts";
import type { FaultShape, Operation } from "../../core/operations/operation.ts";
import { MessagesError } from "../../core/protocol/anthropic-messages/contract.ts";
import { ChatError } from "../../core/protocol/openai-chat/contract.ts";
import { ResponsesError } from "../../core/protocol/openai-responses/contract.ts";

const faultMeanings: Record<FaultCode, string> = {
  invalid_json: "the body is not JSON, or did not arrive completely in time",
  invalid_content_type: "the body is not `application/json`",
  invalid_value:
    "a field has a value that is not allowed, or requires another field that is missing; or the content encoding of the body is not supported",
  missing_field: "a required field is missing",
  unknown_field: "a field is not known",
  mutually_exclusive: "two fields cannot be combined",
  previous_response_not_found: "the response to continue from does not exist",
  websocket_connection_limit_reached: "the WebSocket has reached its age",
  unsupported_feature: "the model, or the service, lacks a capability that the request uses",
  context_length_exceeded: "the input alone exceeds the model's context window",
  missing_api_key: "no API key was sent",
  invalid_api_key: "the API key is not valid",
  expired_api_key: "the API key has expired",
  revoked_api_key: "the API key was revoked",
  no_active_plan: "the organization has no active plan",
  missing_scope: "the API key lacks the scope of the operation",
  organization_suspended: "the organization is suspended",
  person_suspended: "the person to whom the API key or the token belongs is suspended",
  address_not_allowed: "the API key may not be used from the client's address",
  model_not_allowed: "the API key may not use the model",
  model_not_found: "the model does not exist",
  route_not_found: "there is nothing at the path",
  request_not_found: "there is no such request in the organization",
  response_not_found: "the organization has no such stored response, or it has expired",
  method_not_allowed: "the path does not support the method",
  request_too_large: "the body is larger than the service takes, or has more values",
  upgrade_not_supported: "there is no room for a WebSocket, or the service has none; POST works",
  rate_limit_exceeded: "a limit per minute has been reached, of the plan or of the key",
  concurrency_limit_exceeded: "too many requests are running",
  usage_reserved: "running requests hold the rest of a usage window",
  capacity_exceeded: "the model is at capacity",
  usage_limit_reached:
    "a usage window is used up, or has too little left for the request; or the request is above a whole limit (`limit`), and can never pass",
  missing_operator_token: "no operator token was sent",
  invalid_operator_token: "the operator token is not valid, has expired or was revoked",
  missing_session: "nobody is signed in in this browser, or the session has ended",
  missing_role: "the operator's role does not allow the operation",
  tls_required: "the request came without TLS, and not from the node's own machine",
  host_not_allowed: "the `Host` is neither an address nor a name that the operator's port answers to",
  resource_not_found: "what the request names does not exist",
  already_exists: "something has the name already",
  wrong_state: "it is not in a state in which this can be done",
  idempotency_key_reused: "another request came with this `idempotency-key` before",
  idempotency_answer_lost:
    "the answer to the first request with this `idempotency-key` is no longer there; it was charged",
  version_conflict: "it changed since the version in `if-match`; `current` is what there is now",
  internal_error: "the service failed; it has been logged",
  upstream_unavailable: "no engine of the model can be reached",
  upstream_timeout: "the model's engine took too long",
  overloaded: "the service or the model's engine is overloaded, or all engines of the model are drained",
  draining: "the service is shutting down",
  storage_unavailable: "the service cannot admit requests exactly at this moment",
};

/** Returns those of the codes `among` that have this status. */
export function codesOf(status: number, among: readonly FaultCode[], statusIn = statusOf): FaultCode[] {
  return among.filter((code) => statusIn(code) === status);
}

/** The statuses of these codes, in ascending order, each once. */
export function statusesOf(codes: readonly FaultCode[], statusIn = statusOf): number[] {
  return [...new Set(codes.map((code) => statusIn(code)))].sort((a, b) => a - b);
}

export function faultDescription(codes: readonly FaultCode[]): string {
  return codes.map((code) => `\`${code}\`: ${faultMeanings[code]}.`).join("\n\n");
}

export function faultHeaders(status: number): string[] {
  if (status === 401) return ["www-authenticate", "x-should-retry"];
  if (status === 405) return ["allow", "x-should-retry"];
  if (status === 429 || status === 503) return ["retry-after", "x-should-retry"];
  return status < 500 ? ["x-should-retry"] : [];
}

/** The headers of an operation's fault. Faults whose status it does not list share one answer, `default`. */
export function faultHeadersOf({ limitRefusalHeaders = [], success }: Operation, status: number | "default"): string[] {
  // A 401 is answered before the requested model is known.
  const ofModel = success.headers.includes("deprecation") && status !== 401 ? retirementHeaderNames : [];
  if (status === "default") return ["retry-after", "x-should-retry", ...limitRefusalHeaders, ...ofModel];
  return [...faultHeaders(status), ...(status === 429 ? limitRefusalHeaders : []), ...ofModel];
}

/**
 * Faults that belong to no operation, because they are answered before one is chosen. The document describes them once.
 */
export const commonFaults = [
  "route_not_found",
  "method_not_allowed",
  "request_too_large",
  "upgrade_not_supported",
] as const satisfies FaultCode[];

/** The schemas of a refusal's body, and words that say which field of the body holds the code. */
interface FaultDescription {
  schemas: TSchema[];
  code: string;
}

/** The error bodies of operations by their fault shape. */
export const faultShapes: Record<FaultShape, FaultDescription> = {
  error: { schemas: [ChatError], code: "`code`" },
  messages: { schemas: [MessagesError], code: "`error.details.error_code`" },
  responses: { schemas: [ResponsesError], code: "`code`" },
  client: { schemas: [ChatError, MessagesError], code: "`code`" },
};

export function faultExample(code: FaultCode, message: string): unknown {
  const { type } = faultCatalogue[code];
  return { error: { message, type, param: null, code, request_id: "req_019a9e0c52c07c3fb1d2a54e8d3f6b70" } };
}
