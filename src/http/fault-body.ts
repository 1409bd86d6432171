/** Faults on paths that clients of several protocols share: each is told in the words of its own. */
import type { Fault } from "../inference/fault.ts";
import { encodeFault as messagesFault } from "../protocol/anthropic-messages/fault.ts";
import { encodeFault as openaiFault } from "../protocol/openai-chat/fault.ts";

/** Clients of Messages send the version of it that they speak, and only they. */
export function isMessagesClient(request: Request): boolean {
  return request.headers.has("anthropic-version");
}

/** The body of a fault, for whoever asks. */
export function faultBodyForClient(fault: Fault, requestId: string, request: Request): unknown {
  return (isMessagesClient(request) ? messagesFault : openaiFault)(fault, requestId);
}

/** Of a path that names nothing: below `/v1/messages` it was meant for Messages. */
export function faultBodyForPath(fault: Fault, requestId: string, request: Request): unknown {
  const { pathname } = new URL(request.url);
  if (pathname.startsWith("/v1/messages")) return messagesFault(fault, requestId);
  return faultBodyForClient(fault, requestId, request);
}
