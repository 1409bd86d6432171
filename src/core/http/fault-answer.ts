/** The answer of a fault: its status, its body, and the headers that say whether and when to try again. */
import { Fault } from "../inference/fault.ts";
import type { Call } from "./call.ts";
import { json } from "./json.ts";

export type FaultBody = (fault: Fault, requestId: string, request: Request) => unknown;

export interface FaultForm {
  faultBody: FaultBody;
  faultHeaders?(fault: Fault, request: Request): Record<string, string>;
}

export function answerFault(call: Call, fault: Fault, { faultBody, faultHeaders }: FaultForm): Response {
  call.failed(fault);
  return json(fault.status, faultBody(fault, call.requestId, call.request), {
    ...(isFinal(fault) ? { "x-should-retry": "false" } : {}),
    ...retryAfter(fault),
    ...fault.details.headers,
    ...faultHeaders?.(fault, call.request),
  });
}

/**
 * Whether the request would fail again if it were repeated within a minute. The header `x-should-retry` tells clients
 * so, and clients that obey it do not try again.
 */
function isFinal({ status, details }: Fault): boolean {
  if (status === 429 || status >= 500) return (details.retryAfterSeconds ?? 0) > 60;
  return true;
}

/**
 * The `retry-after` header. There is none for a limit that lasts longer than a minute, because clients would sleep for
 * as long as the header says, for days and in silence: docs/errors.md, usage_limit_reached. The body says when the
 * limit resets.
 */
export function retryAfter(fault: Fault): Record<string, string> {
  const { retryAfterSeconds } = fault.details;
  if (retryAfterSeconds === undefined || (fault.status === 429 && isFinal(fault))) return {};
  return { "retry-after": String(Math.ceil(retryAfterSeconds)) };
}

/** The fault of a request with a method that its path does not have. `allow` names the methods that the path has. */
export function methodNotAllowed(method: string, allow: string): Fault {
  const name = method === "HEAD" ? "GET" : method;
  const named = /^[A-Z]{1,16}$/.test(name) ? name : "that method";
  return new Fault("method_not_allowed", `This path does not support ${named}. It supports ${allow}.`, {
    headers: { allow },
  });
}
