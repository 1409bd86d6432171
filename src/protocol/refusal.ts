/**
 * What an engine's refusal means to the caller. Its words never pass: they name models, hosts and paths of the operator.
 * A 400 is about the request; 401, 403 and 404 are the operator's fault; 429 and 5xx are the engine's:
 * docs/design/errors-and-streams.md, Engine failures.
 */
import { Fault } from "../inference/fault.ts";
import { inputTooLong } from "../inference/overflow.ts";
import type { NamedField } from "./fields.ts";
import { isObject, type JsonObject, textOf } from "./json.ts";
import { inputTokensOf, saysContextIsExceeded } from "./overflow.ts";

/** `error` is what `errorOf` found in the body; `field` is to blame. */
export function refusalFault(status: number, error: JsonObject, field?: NamedField): Fault {
  // Not even the log may quote an engine: its words name models, hosts and what the caller said.
  const cause = new Error(`the upstream answered ${status}`);
  const unread = status === 500 ? unreadField(textOf(error.message).slice(0, 4000)) : undefined;
  if (unread) return refusalFault(400, error, unread);
  // Too many tokens in a minute are another matter.
  if (status !== 429 && saysContextIsExceeded(error)) return inputTooLong(inputTokensOf(error), { cause });
  if (status === 429) {
    return new Fault("capacity_exceeded", "The model is at capacity. Please try again shortly.", {
      retryAfterSeconds: 1,
      cause,
    });
  }
  if (status === 400 || status === 413 || status === 422) {
    return new Fault(
      "invalid_value",
      "The model's engine cannot serve this request. Change the request's content, or choose another model.",
      { ...field, cause },
    );
  }
  if (status === 408 || status === 504) {
    return new Fault("upstream_timeout", "The model's engine took too long. Please try again.", {
      retryAfterSeconds: 1,
      cause,
    });
  }
  if (status === 503 || status === 529) {
    return new Fault("overloaded", "The model is overloaded. Please try again shortly.", {
      retryAfterSeconds: 1,
      cause,
    });
  }
  return new Fault("upstream_unavailable", "The model is not available at the moment. Please try again shortly.", {
    retryAfterSeconds: status === 401 || status === 403 || status === 404 ? misconfigured_s : 1,
    cause,
  });
}

/** An operator has to mend it. Above a minute clients stop and say so, instead of trying again in silence. */
const misconfigured_s = 120;

/**
 * llama.cpp answers 500 to what it cannot read of the request: trying again would only cost two more. Any other 500 is
 * the engine's.
 */
function unreadField(message: string): NamedField | undefined {
  if (message.startsWith("Failed to parse tools")) return { param: "tools", engineProtocol: "openai-chat" };
  return unreadable.test(message) ? { param: "messages", engineProtocol: "openai-chat" } : undefined;
}
const unreadable =
  /^(Failed to parse (messages|tool call arguments)|Failed to (load|download) (image|audio|file)|(image|audio|video) input is not supported)/;

/** `{error: {…}}`, `{error: "…"}`, `{detail: …}`, `{object: "error", message}`, or text. */
export function errorOf(body: unknown): JsonObject {
  if (typeof body === "string") return { message: body };
  if (!isObject(body)) return {};
  if (isObject(body.error)) return body.error;
  if (typeof body.error === "string") return { message: body.error };
  if (body.detail !== undefined)
    return { message: typeof body.detail === "string" ? body.detail : JSON.stringify(body.detail) };
  return body;
}

/** An answer that cannot be read, and one that ended before it was complete: the engine's failure, in our words. */
export function malformedAnswer(cause: unknown): Fault {
  return new Fault("upstream_unavailable", "The model's engine sent an unreadable answer. Please try again.", {
    retryAfterSeconds: 1,
    cause,
  });
}

export function answerCutShort(missing: string): Fault {
  return new Fault("upstream_unavailable", "The model's engine ended its answer early. Please try again.", {
    retryAfterSeconds: 1,
    cause: new Error(`the upstream ended without ${missing}`),
  });
}
