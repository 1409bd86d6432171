/**
 * Turns an engine's refusal into the fault that the caller gets. The engine's own text is never passed on, because it
 * may name models, hosts and paths of the operator. A 400 is about the request; 401, 403 and 404 are for the operator
 * to correct; 429 and 5xx are failures of the engine: docs/design/errors-and-streams.md, Engine failures.
 */
import { Fault, type FaultCode } from "../inference/fault.ts";
import { inputTooLong } from "../inference/overflow.ts";
import type { Refusals } from "./dialect.ts";
import { sentenceIn } from "./engine-sentence.ts";
import { unquoted } from "./engine-text.ts";
import type { FieldNamer, NamedField } from "./fields.ts";
import { entryOf, isObject, type JsonObject, textOf } from "./json.ts";
import { headOf, saidOverflow, saysContextIsExceeded } from "./overflow.ts";

/**
 * The fault, with the engine's own text for the record. `error`: the result of `errorOf`. `blamed`: the field that the
 * engine blames.
 */
export function refusalFault(
  status: number,
  error: JsonObject,
  said: Refusals,
  named: FieldNamer = () => undefined,
  blamed = named(error.param),
): Fault {
  const fault = publicFault(status, error, said, named, blamed);
  const engineText = unquoted(textOf(error.message));
  return engineText === "" ? fault : new Fault(fault.code, fault.message, { ...fault.details, engineText });
}

function publicFault(
  answered: number,
  error: JsonObject,
  said: Refusals,
  named: FieldNamer,
  field: NamedField | undefined,
): Fault {
  // The fault's cause, which goes to the log, does not quote the engine either: the engine's text may hold names, hosts
  // and the caller's words.
  const cause = new Error(`the upstream answered ${answered}`);
  const status = statusMeant(answered, error, said);
  // Another attempt with a field that the engine could not read would fail, too.
  const unread = status === 500 ? said.unread.find(({ words }) => words.test(headOf(error))) : undefined;
  if (unread) return publicFault(400, error, said, named, { param: unread.param, engineProtocol: "openai-chat" });
  // In a 429, words about too long an input mean a limit of tokens per minute.
  if (status !== 429 && saysContextIsExceeded(error, said)) return inputTooLong(saidOverflow(error, said), { cause });
  const says = (words: readonly RegExp[]) => words.some((one) => one.test(`${error.code ?? ""} ${headOf(error)}`));
  switch (status) {
    case 400:
    case 413:
    case 422: {
      if (says(said.operators)) return engineFailure("upstream_unavailable", unavailable, cause, misconfigured_s);
      if (says(said.failed)) return engineFailure("upstream_unavailable", failedToWrite, cause);
      const blamed = field ?? (says(said.format) ? formatField : undefined);
      const text = headOf(error);
      const sentence = sentenceIn(text, said, named);
      const thing = said.things.find(({ words }) => words.test(`${text} ${textOf(error.code)}`))?.thing;
      const message = thing
        ? `The model's engine cannot serve this request because of ${thing}. Change that, or choose another model.`
        : "The model's engine cannot serve this request. Change the request's content, or choose another model.";
      return new Fault("invalid_value", message, { ...blamed, ...(sentence && { sentence }), cause });
    }
    case 429:
      return engineIsFull(cause);
    case 408:
    case 504:
      return engineFailure("upstream_timeout", "The model's engine took too long. Please try again.", cause);
    case 503:
      if (said.full.some((words) => words.test(headOf(error)))) return engineIsFull(cause);
      return engineFailure("overloaded", overloaded, cause);
    case 529:
      return engineFailure("overloaded", overloaded, cause);
    default:
      return engineFailure("upstream_unavailable", unavailable, cause, operators.has(status) ? misconfigured_s : 1);
  }
}

/** The status that an engine's error means, which may differ from the status of its answer. */
function statusMeant(answered: number, error: JsonObject, { otherwise }: Refusals): number {
  const text = `${textOf(error.type)} ${headOf(error)}`;
  return otherwise.find(({ status, words }) => status === answered && words.test(text))?.means ?? answered;
}

/** Whether the operator has to correct something before the engine can serve anybody. */
export function isMisconfigured({ code, details }: Fault): boolean {
  return code === "upstream_unavailable" && details.retryAfterSeconds === misconfigured_s;
}

/** The statuses with which an engine reports that the operator's key, balance or model name is wrong. */
const operators: ReadonlySet<number> = new Set([401, 402, 403, 404]);

const formatField: NamedField = { param: "response_format", engineProtocol: "openai-chat" };
const unavailable = "The model is not available at the moment. Please try again shortly.";
const failedToWrite = "The model failed to write its answer in a form that can be read. Please try again.";

const overloaded = "The model is overloaded. Please try again shortly.";

function engineIsFull(cause: unknown): Fault {
  return engineFailure("capacity_exceeded", "The model is at capacity. Please try again shortly.", cause);
}

function engineFailure(code: FaultCode, message: string, cause: unknown, retryAfterSeconds = 1): Fault {
  return new Fault(code, message, { retryAfterSeconds, cause });
}

/**
 * The `retry-after` of a fault that the operator has to correct. Above a minute, clients report the fault instead of
 * trying again silently.
 */
const misconfigured_s = 120;

/** The error in an engine's body: `{error: {…}}`, `{error: "…"}`, `{detail: …}`, `{object: "error", message}`, or text. */
export function errorOf(body: unknown): JsonObject {
  if (typeof body === "string") return { message: body };
  // Gemini puts its error into a list.
  if (Array.isArray(body)) return isObject(body[0]) ? errorOf(body[0]) : {};
  if (!isObject(body)) return {};
  if (isObject(body.error)) return body.error;
  if (typeof body.error === "string") return { message: body.error };
  if (body.detail !== undefined)
    return { message: typeof body.detail === "string" ? body.detail : JSON.stringify(body.detail) };
  return body;
}

export function malformedAnswer(cause: unknown): Fault {
  return engineFailure(
    "upstream_unavailable",
    "The model's engine sent an unreadable answer. Please try again.",
    cause,
  );
}

export function answerCutShort(missing: string): Fault {
  const cause = new Error(`the upstream ended without ${missing}`);
  return engineFailure("upstream_unavailable", "The model's engine ended its answer early. Please try again.", cause);
}

/**
 * The HTTP status of an error inside an answer of one of OpenAI's protocols: in its `code` or `status`, else that of its
 * code or of its type, else 500.
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
