/** The faults that every operation of inference can have. */
import type { FaultCode } from "../inference/fault.ts";

export const inferenceFaults = [
  "invalid_json",
  "invalid_content_type",
  "invalid_value",
  "missing_field",
  "unknown_field",
  "unsupported_feature",
  "context_length_exceeded",
  "no_active_plan",
  "model_not_allowed",
  "model_not_found",
  "rate_limit_exceeded",
  "concurrency_limit_exceeded",
  "usage_reserved",
  "capacity_exceeded",
  "usage_limit_reached",
  "internal_error",
  "upstream_unavailable",
  "upstream_timeout",
  "overloaded",
  "draining",
  "storage_unavailable",
] as const satisfies readonly FaultCode[];
