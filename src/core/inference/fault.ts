/**
 * The catalogue of faults: every way in which a request can fail. Each protocol writes them in its own form. `message`
 * is public: it says what is wrong and what to do, and never contains a key, or an upstream's name, address or text.
 * `cause` is private and goes only to the log. A thrown value that is not a Fault is a defect, and becomes
 * `internal_error`. Rules: docs/design/errors-and-streams.md, Errors.
 */
import { masked } from "./masked.ts";
import type { Protocol } from "./request.ts";

export const faultCatalogue = {
  invalid_json: { status: 400, type: "invalid_request_error", messages: "invalid_request_error" },
  invalid_content_type: { status: 400, type: "invalid_request_error", messages: "invalid_request_error" },
  invalid_value: { status: 400, type: "invalid_request_error", messages: "invalid_request_error" },
  missing_field: { status: 400, type: "invalid_request_error", messages: "invalid_request_error" },
  unknown_field: { status: 400, type: "invalid_request_error", messages: "invalid_request_error" },
  mutually_exclusive: { status: 400, type: "invalid_request_error", messages: "invalid_request_error" },
  previous_response_not_found: { status: 400, type: "invalid_request_error", messages: "invalid_request_error" },
  unsupported_feature: { status: 400, type: "invalid_request_error", messages: "invalid_request_error" },
  websocket_connection_limit_reached: { status: 400, type: "invalid_request_error", messages: "invalid_request_error" },
  context_length_exceeded: { status: 400, type: "invalid_request_error", messages: "invalid_request_error" },
  idempotency_key_reused: {
    status: 400,
    management: 409,
    type: "invalid_request_error",
    messages: "invalid_request_error",
  },
  idempotency_answer_lost: { status: 400, type: "invalid_request_error", messages: "invalid_request_error" },
  missing_api_key: { status: 401, type: "authentication_error", messages: "authentication_error" },
  invalid_api_key: { status: 401, type: "authentication_error", messages: "authentication_error" },
  expired_api_key: { status: 401, type: "authentication_error", messages: "authentication_error" },
  revoked_api_key: { status: 401, type: "authentication_error", messages: "authentication_error" },
  no_active_plan: { status: 402, type: "billing_error", messages: "billing_error" },
  missing_scope: { status: 403, type: "permission_error", messages: "permission_error" },
  organization_suspended: { status: 403, type: "permission_error", messages: "permission_error" },
  person_suspended: { status: 403, type: "permission_error", messages: "permission_error" },
  address_not_allowed: { status: 403, type: "permission_error", messages: "permission_error" },
  model_not_allowed: { status: 403, type: "permission_error", messages: "permission_error" },
  model_not_found: { status: 404, type: "invalid_request_error", messages: "not_found_error" },
  route_not_found: { status: 404, type: "invalid_request_error", messages: "not_found_error" },
  request_not_found: { status: 404, type: "invalid_request_error", messages: "not_found_error" },
  response_not_found: { status: 404, type: "invalid_request_error", messages: "not_found_error" },
  method_not_allowed: { status: 405, type: "invalid_request_error", messages: "invalid_request_error" },
  request_too_large: { status: 413, type: "invalid_request_error", messages: "request_too_large" },
  upgrade_not_supported: { status: 426, type: "invalid_request_error", messages: "invalid_request_error" },
  rate_limit_exceeded: { status: 429, type: "rate_limit_error", messages: "rate_limit_error" },
  concurrency_limit_exceeded: { status: 429, type: "rate_limit_error", messages: "rate_limit_error" },
  usage_reserved: { status: 429, type: "rate_limit_error", messages: "rate_limit_error" },
  capacity_exceeded: { status: 429, type: "rate_limit_error", messages: "rate_limit_error" },
  usage_limit_reached: { status: 429, type: "usage_limit_error", messages: "rate_limit_error" },
  missing_operator_token: { status: 401, type: "authentication_error", messages: "authentication_error" },
  invalid_operator_token: { status: 401, type: "authentication_error", messages: "authentication_error" },
  missing_session: { status: 401, type: "authentication_error", messages: "authentication_error" },
  missing_role: { status: 403, type: "permission_error", messages: "permission_error" },
  tls_required: { status: 403, type: "permission_error", messages: "permission_error" },
  host_not_allowed: { status: 403, type: "permission_error", messages: "permission_error" },
  resource_not_found: { status: 404, type: "invalid_request_error", messages: "not_found_error" },
  already_exists: { status: 409, type: "invalid_request_error", messages: "invalid_request_error" },
  wrong_state: { status: 409, type: "invalid_request_error", messages: "invalid_request_error" },
  version_conflict: { status: 412, type: "invalid_request_error", messages: "invalid_request_error" },
  internal_error: { status: 500, type: "api_error", messages: "api_error" },
  upstream_unavailable: { status: 503, type: "api_error", messages: "overloaded_error" },
  upstream_timeout: { status: 503, type: "api_error", messages: "overloaded_error" },
  overloaded: { status: 503, type: "api_error", messages: "overloaded_error" },
  draining: { status: 503, type: "api_error", messages: "overloaded_error" },
  storage_unavailable: { status: 503, type: "api_error", messages: "overloaded_error" },
} as const satisfies Record<string, FaultEntry>;

interface FaultEntry {
  status: number;
  /** The HTTP status in the management interface, if it differs from `status`. */
  management?: number;
  type: string;
  /** The error's type in the protocol of Messages. */
  messages: string;
}

export type FaultCode = keyof typeof faultCatalogue;

export const statusOf = (code: FaultCode): number => faultCatalogue[code].status;

export function managementStatusOf(code: FaultCode): number {
  const { status, management = status }: FaultEntry = faultCatalogue[code];
  return management;
}

/**
 * The codes of the management interface. Clients of the API get only those that have a separate status for that
 * interface.
 */
export const managementFaultCodes = [
  "missing_operator_token",
  "invalid_operator_token",
  "missing_session",
  "missing_role",
  "tls_required",
  "host_not_allowed",
  "resource_not_found",
  "already_exists",
  "wrong_state",
  "idempotency_key_reused",
  "version_conflict",
] as const satisfies FaultCode[];

export const clientFaultCodes = (Object.keys(faultCatalogue) as FaultCode[]).filter(
  (code) => "management" in faultCatalogue[code] || !managementFaultCodes.some((one) => one === code),
);

/** The lengths of an input and of the model's context in tokens, as far as the engine's error states them. */
export interface SaidOverflow {
  inputTokens?: number;
  /** Set if the input is at least this long, because the engine stopped counting there. */
  isAtLeast?: true;
  contextTokens?: number;
}

/** The limit that refused a request, with its size and use at that time. Money is in nanos. */
export interface LimitMet {
  limitedBy: "organization" | "team" | "person" | "key";
  /** The models that count in the limit: a public model id, or `prefix/*`. Absent: all models. */
  models?: string;
  /** The limit's name; `extra`: the extra usage of the month. */
  name: "session" | "week" | "month" | "extra" | "requests_per_minute" | "tokens_per_minute" | "concurrent_requests";
  limit: number;
  /** The use that was read; null if the request alone exceeds the limit, so that the use was not read. */
  used: number | null;
  /** The nanos that running requests hold in the window, in addition to `used`. */
  held?: number;
  /** The least amount that the request needs of this limit. */
  needed: number;
  /** When the window ends. Absent: no reset makes room for the request. */
  resetAt?: Date;
}

export interface FaultDetails {
  /** The path of the offending field in the request. */
  param?: string;
  /** The protocol in which `param` is written, if an engine named the field. */
  engineProtocol?: Protocol;
  /** A sentence of an engine that callers may read, in pieces: texts, and names of fields in the engine's protocol. */
  sentence?: readonly (string | { param: string; engineProtocol: Protocol })[];
  /** The lengths that the engine reported, with `context_length_exceeded` (inference/overflow.ts). */
  overflow?: SaidOverflow;
  /** Whole seconds, sent as `retry-after`. */
  retryAfterSeconds?: number;
  /** Further response headers, such as `allow`, by name. */
  headers?: Record<string, string>;
  /** The limit that refused the request, for its receipt. */
  limit?: LimitMet;
  /** The engine's own error text, which goes only into the request's record. */
  engineText?: string;
  /** Further keys of the error object. */
  body?: Record<string, unknown>;
  /** The cause, for the log only. */
  cause?: unknown;
}

export class Fault extends Error {
  readonly code: FaultCode;
  readonly details: FaultDetails;

  constructor(code: FaultCode, message: string, details: FaultDetails = {}) {
    // The message may quote the caller, and so may the path of a field: secrets in it are masked.
    super(masked(message), { cause: details.cause });
    this.name = "Fault";
    this.code = code;
    this.details = details.param === undefined ? details : { ...details, param: masked(details.param) };
  }

  get status(): number {
    return statusOf(this.code);
  }
}

/** The thrown value as a Fault. A value that is not a Fault is a defect, and the message reveals nothing about it. */
export function asFault(thrown: unknown): Fault {
  if (thrown instanceof Fault) return thrown;
  return new Fault(
    "internal_error",
    "The service failed to handle this request. It has been logged; please try again.",
    {
      cause: thrown,
    },
  );
}
