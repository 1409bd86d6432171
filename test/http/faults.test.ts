/** The catalogue of faults against the decisions' table: status and type of each code, in five keys, that say what to do. */
import { expect, test } from "bun:test";
import { asFault, Fault, type FaultCode, faultCatalogue } from "../../src/inference/fault.ts";
import { encodeFault } from "../../src/protocol/openai-chat/fault.ts";

/** decisions.md, Errors: written out, so that a change of the code is a change here. */
const table: Record<FaultCode, [status: number, type: string, messages: string]> = {
  invalid_json: [400, "invalid_request_error", "invalid_request_error"],
  invalid_content_type: [400, "invalid_request_error", "invalid_request_error"],
  invalid_value: [400, "invalid_request_error", "invalid_request_error"],
  missing_field: [400, "invalid_request_error", "invalid_request_error"],
  unknown_field: [400, "invalid_request_error", "invalid_request_error"],
  mutually_exclusive: [400, "invalid_request_error", "invalid_request_error"],
  idempotency_key_reused: [400, "invalid_request_error", "invalid_request_error"],
  previous_response_not_found: [400, "invalid_request_error", "invalid_request_error"],
  unsupported_feature: [400, "invalid_request_error", "invalid_request_error"],
  context_length_exceeded: [400, "invalid_request_error", "invalid_request_error"],
  missing_api_key: [401, "authentication_error", "authentication_error"],
  invalid_api_key: [401, "authentication_error", "authentication_error"],
  expired_api_key: [401, "authentication_error", "authentication_error"],
  revoked_api_key: [401, "authentication_error", "authentication_error"],
  no_active_plan: [402, "billing_error", "billing_error"],
  missing_scope: [403, "permission_error", "permission_error"],
  organization_suspended: [403, "permission_error", "permission_error"],
  model_not_allowed: [403, "permission_error", "permission_error"],
  model_not_found: [404, "invalid_request_error", "not_found_error"],
  route_not_found: [404, "invalid_request_error", "not_found_error"],
  request_not_found: [404, "invalid_request_error", "not_found_error"],
  method_not_allowed: [405, "invalid_request_error", "invalid_request_error"],
  request_too_large: [413, "invalid_request_error", "request_too_large"],
  upgrade_not_supported: [426, "invalid_request_error", "invalid_request_error"],
  rate_limit_exceeded: [429, "rate_limit_error", "rate_limit_error"],
  concurrency_limit_exceeded: [429, "rate_limit_error", "rate_limit_error"],
  request_in_progress: [429, "rate_limit_error", "rate_limit_error"],
  usage_reserved: [429, "rate_limit_error", "rate_limit_error"],
  capacity_exceeded: [429, "rate_limit_error", "rate_limit_error"],
  usage_limit_reached: [429, "usage_limit_error", "rate_limit_error"],
  internal_error: [500, "api_error", "api_error"],
  upstream_unavailable: [503, "api_error", "overloaded_error"],
  upstream_timeout: [503, "api_error", "overloaded_error"],
  overloaded: [503, "api_error", "overloaded_error"],
  draining: [503, "api_error", "overloaded_error"],
  storage_unavailable: [503, "api_error", "overloaded_error"],
};

test("each code has the status and the types that the decisions give it", () => {
  const rows = Object.entries(faultCatalogue).map(([code, { status, type, messages }]) => [
    code,
    [status, type, messages],
  ]);
  expect(Object.fromEntries(rows)).toEqual(table);
});

test("each is rendered with five keys, param null where there is none", () => {
  for (const code of Object.keys(table) as FaultCode[]) {
    const { error } = encodeFault(new Fault(code, "what is wrong"), `req_${"0".repeat(32)}`);
    expect(error).toEqual({
      message: "what is wrong",
      type: table[code][1] as never,
      param: null,
      code,
      request_id: `req_${"0".repeat(32)}`,
    });
  }
});

test("what is no fault is an internal error that says nothing of itself", () => {
  for (const thrown of [new Error("password=secret at /home/x"), "secret", null, undefined, { secret: 1 }]) {
    const fault = asFault(thrown);
    expect(fault.code).toBe("internal_error");
    expect(JSON.stringify(encodeFault(fault, "req_1"))).not.toContain("secret");
  }
});
