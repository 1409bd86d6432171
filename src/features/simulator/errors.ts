/** Writes errors in the forms that engines use. */
import type { Directives, Quirk } from "./directives.ts";
import { SimulatorRefusal } from "./refusal.ts";

/** The error in OpenAI's envelope, unless a quirk requests another form. */
export function errorBody(refusal: SimulatorRefusal, quirks: ReadonlySet<Quirk>): Record<string, unknown> {
  const { message, type, param, status } = refusal;
  if (quirks.has("detail-error")) return { detail: message };
  const code = quirks.has("integer-code") ? status : refusal.code;
  if (quirks.has("object-error")) return { object: "error", message, type, param, code };
  return { error: { message, type, param, code } };
}

export function errorResponse(refusal: SimulatorRefusal, directives: Directives | null): Response {
  const body = JSON.stringify(errorBody(refusal, directives?.quirks ?? new Set()));
  return new Response(body, { status: refusal.status, headers: headers(directives, "application/json") });
}

/** The error response that the directives request, or null. */
export function faultResponse(directives: Directives, stream: boolean, prompt_tokens: number): Response | null {
  const { flags, numbers } = directives;
  if (flags.has("html-error")) return htmlError(numbers["html-error"] ?? 502, directives);
  if (flags.has("context-length")) return errorResponse(contextLength(prompt_tokens), directives);
  if (numbers.status !== undefined) return errorResponse(requestedError(numbers.status), directives);
  if (numbers["error-after"] !== undefined && !stream) return errorResponse(requestedError(500), directives);
  return null;
}

function requestedError(status: number): SimulatorRefusal {
  const code = status === 429 ? "rate_limit_exceeded" : status === 401 ? "invalid_api_key" : null;
  return new SimulatorRefusal(status, `Simulator: status ${status}, as asked.`, code);
}

function contextLength(prompt_tokens: number): SimulatorRefusal {
  const limit = Math.max(1, prompt_tokens - 1);
  const message =
    `This model's maximum context length is ${limit} tokens. However, your messages resulted in ` +
    `${prompt_tokens} tokens. Please reduce the length of the messages.`;
  return new SimulatorRefusal(400, message, "context_length_exceeded", "messages");
}

function htmlError(status: number, directives: Directives): Response {
  const page = `<html><head><title>${status}</title></head><body><h1>${status}</h1><hr>simulator</body></html>\n`;
  return new Response(page, { status, headers: headers(directives, "text/html") });
}

function headers(directives: Directives | null, contentType: string): Record<string, string> {
  const retry_after_s = directives?.numbers["retry-after"];
  if (retry_after_s === undefined) return { "content-type": contentType };
  return { "content-type": contentType, "retry-after": String(retry_after_s) };
}
