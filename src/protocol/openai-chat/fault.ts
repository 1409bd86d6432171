/** Faults, both ways: ours in OpenAI's envelope, and an engine's refusal as a fault that tells nothing of the engine. */
import { type Fault, faultCatalogue, Fault as PublicFault } from "../../inference/fault.ts";
import type { ChatError } from "./contract.ts";
import { ChatCompletionRequest as contract } from "./contract.ts";
import { isObject, type JsonObject, textOf } from "./json.ts";

export function encodeFault(fault: Fault, requestId: string): ChatError {
  return {
    error: {
      message: fault.message,
      type: faultCatalogue[fault.code].type,
      param: fault.details.param ?? null,
      code: fault.code,
      request_id: requestId,
      ...fault.details.body,
    },
  };
}

/**
 * What an engine's refusal means to the caller. Its words never pass: they name models, hosts and paths of the operator.
 * A 400 is about the request; 401, 403 and 404 are the operator's fault; 429 and 5xx are the engine's (decisions.md, Errors).
 */
export function decodeFault(status: number, body: unknown): Fault {
  const error = errorOf(body);
  // Not even the log may quote an engine: its words name models, hosts and what the caller said.
  const cause = new Error(`the upstream answered ${status}`);
  if (saysContextIsExceeded(error)) {
    return new PublicFault(
      "context_length_exceeded",
      "The input does not fit the model's context window. Shorten the messages, or choose a model with a larger context.",
      { param: "messages", cause },
    );
  }
  if (status === 429) {
    return new PublicFault("capacity_exceeded", "The model is at capacity. Please try again shortly.", {
      retryAfterSeconds: 1,
      cause,
    });
  }
  if (status === 400 || status === 413 || status === 422) {
    const param = ourField(error.param);
    return new PublicFault(
      "invalid_value",
      `The model's engine cannot serve this request${param ? ` because of '${param}'` : ""}. Change ${param ? "that value" : "the request's content"}, or choose another model.`,
      { param, cause },
    );
  }
  if (status === 408 || status === 504) {
    return new PublicFault("upstream_timeout", "The model's engine took too long. Please try again.", {
      retryAfterSeconds: 1,
      cause,
    });
  }
  if (status === 503 || status === 529) {
    return new PublicFault("overloaded", "The model is overloaded. Please try again shortly.", {
      retryAfterSeconds: 1,
      cause,
    });
  }
  return new PublicFault(
    "upstream_unavailable",
    "The model is not available at the moment. Please try again shortly.",
    {
      retryAfterSeconds: status === 401 || status === 403 || status === 404 ? 30 : 1,
      cause,
    },
  );
}

/** `{error: {…}}`, `{error: "…"}`, `{detail: …}`, `{object: "error", message}`, or text. */
function errorOf(body: unknown): JsonObject {
  if (typeof body === "string") return { message: body };
  if (!isObject(body)) return {};
  if (isObject(body.error)) return body.error;
  if (typeof body.error === "string") return { message: body.error };
  if (body.detail !== undefined)
    return { message: typeof body.detail === "string" ? body.detail : JSON.stringify(body.detail) };
  return body;
}

function saysContextIsExceeded(error: JsonObject): boolean {
  if (error.code === "context_length_exceeded" || error.type === "exceed_context_size_error") return true;
  return contextWords.test(textOf(error.message).slice(0, 4000));
}
const contextWords =
  /maximum context|context (length|window|size)|max(imum)?_?model_?len|longer than the (model|maximum)|exceeds? the (available )?context|prompt (is )?too long|too many (input )?tokens/i;

/** A path that begins with a field of our contract may be named; anything else might be the engine's own word. */
function ourField(param: unknown): string | undefined {
  const path = textOf(param);
  if (path.length > 128 || !/^[a-z_]+([.[][a-z0-9_\]]+)*$/.test(path)) return undefined;
  const root = path.split(/[.[]/)[0] ?? "";
  return root !== "model" && Object.hasOwn(contract.properties, root) ? path : undefined;
}
