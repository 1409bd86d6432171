/** Faults, both ways: ours in OpenAI's envelope and in `response.failed`, an engine's as one that tells nothing of it. */
import type { Fault, FaultCode } from "../../inference/fault.ts";
import { envelopeOf, messageIn } from "../envelope/encode.ts";
import { namedField } from "../fields.ts";
import { entryOf, type JsonObject, textOf } from "../json.ts";
import { errorOf, refusalFault } from "../refusal.ts";
import { ResponsesRequest as contract, type ResponseFailure, type ResponsesError } from "./contract.ts";

export function encodeFault(fault: Fault, requestId: string): ResponsesError {
  const { error } = envelopeOf(fault, requestId, "openai-responses");
  // Codex stops at once, and shows the limit, by this type alone.
  const type = fault.code === "usage_limit_reached" ? fault.code : error.type;
  return { error: { ...error, type, param: paramOf(error) } };
}

/** What is said of the whole conversation in chat's word for it is said in ours. */
function paramOf({ param }: ResponsesError["error"]): string | null {
  return param === "messages" ? "input" : param;
}

/** Inside a stream, in the codes by which Codex decides whether to try again; how long to wait it reads from the words. */
export function encodeFailure(fault: Fault, requestId: string): ResponseFailure {
  const code = failureCodes[fault.code] ?? (fault.status === 400 ? "invalid_prompt" : "server_error");
  const wait = fault.details.retryAfterSeconds;
  const said = messageIn("openai-responses", fault);
  const message = code === "rate_limit_exceeded" && wait !== undefined ? `${said} Please try again in ${wait}s.` : said;
  return { code, message, request_id: requestId };
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

/** What an engine's refusal means to the caller; its words never pass (refusal.ts). */
export function decodeFault(status: number, body: unknown): Fault {
  return refusalOf(status, errorOf(body));
}

/** An error where an answer should stand has no status; its code, or its type, stands for one. */
export function decodeFailure(error: unknown): Fault {
  const said = errorOf(error);
  const status =
    entryOf(statuses, textOf(said.code)) ?? entryOf(statuses, textOf(said.type)) ?? Number(said.code ?? said.status);
  return refusalOf(status >= 400 && status < 600 ? status : 500, said);
}

function refusalOf(status: number, error: JsonObject): Fault {
  return refusalFault(status, error, namedField("openai-responses", contract, error.param));
}

const statuses: Partial<Record<string, number>> = {
  invalid_prompt: 400,
  invalid_request_error: 400,
  context_length_exceeded: 400,
  authentication_error: 401,
  // The operator's quota, not the caller's.
  insufficient_quota: 403,
  permission_error: 403,
  rate_limit_exceeded: 429,
  rate_limit_error: 429,
  server_error: 500,
  server_is_overloaded: 503,
  slow_down: 503,
};
