/**
 * The HTTP status that stands for an error inside an answer of an engine that speaks one of OpenAI's protocols. Pure.
 */
import { entryOf, type JsonObject, textOf } from "./json.ts";

/**
 * The HTTP status in the error's `code` or `status`; else the status that belongs to its code or to its type; else 500.
 */
export function statusWithin(error: JsonObject): number {
  const status = [error.code, error.status].map(Number).find((number) => number >= 400 && number < 600);
  return status ?? entryOf(statuses, textOf(error.code)) ?? entryOf(statuses, textOf(error.type)) ?? 500;
}

const statuses: Partial<Record<string, number>> = {
  // Code of z.ai.
  1302: 429,
  invalid_prompt: 400,
  invalid_request_error: 400,
  context_length_exceeded: 400,
  authentication_error: 401,
  // This code is about the operator's quota at the engine, not the caller's.
  insufficient_quota: 403,
  permission_error: 403,
  rate_limit_exceeded: 429,
  rate_limit_error: 429,
  server_error: 500,
  server_is_overloaded: 503,
  slow_down: 503,
};
