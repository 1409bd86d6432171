/**
 * Checks whether an HTTP response is one that the contract describes. The check is stricter than the contract is to
 * clients: a field that the contract does not name is reported as a problem, though clients must ignore fields that
 * they don't know.
 */
import type { TSchema } from "typebox";
import { type FaultCode, faultCatalogue } from "../../src/core/inference/fault.ts";
import type { Content, Operation } from "../../src/core/operations/operation.ts";
import { MessagesError } from "../../src/core/protocol/anthropic-messages/contract.ts";
import { ChatError } from "../../src/core/protocol/openai-chat/contract.ts";
import { ResponsesError } from "../../src/core/protocol/openai-responses/contract.ts";
import {
  commonFaults,
  faultHeaders,
  faultHeadersOf,
  faultShapes,
  statusesOf,
} from "../../src/features/openapi/faults.ts";
import { headers as contractHeaders } from "../../src/features/openapi/headers.ts";
import { contract as described, metricsOperations, unlistedOperations } from "../../src/node/operations.ts";
import { type Problems, parsed, schemaProblems } from "./frames.ts";
import { streamProblems } from "./streams.ts";

export interface Answer {
  method: string;
  /** The path and query of the request. */
  path: string;
  status: number;
  headers: ReadHeaders;
  /** The body's text; null if the body was not read to its end, and then only status and headers are checked. */
  body: string | null;
}

/**
 * The methods of a Headers object that this file uses, because the Headers types of Bun and of the DOM differ
 * otherwise.
 */
export interface ReadHeaders {
  get(name: string): string | null;
  has(name: string): boolean;
}

/**
 * Returns a function that lists the problems of a response, each as a sentence; the list is empty when the response
 * conforms. Schemas are compiled when they are first needed.
 */
export function responseValidator(): (answer: Answer) => string[] {
  const problemOf = schemaProblems();
  return (answer) => {
    const where = `${answer.method} ${answer.path.slice(0, 100)} → ${answer.status}`;
    return [...identityProblems(answer), ...answerProblems(answer, problemOf)].map((problem) => `${where}: ${problem}`);
  };
}

/**
 * Paths that are served but are not in the contract: those that the console's page loads, and the metrics, which only
 * an operator reads.
 */
const unlistedPaths = [...unlistedOperations, ...metricsOperations].map(({ path }) => path);

function identityProblems({ headers }: Answer): string[] {
  const id = headers.get("x-service-request-id") ?? "";
  if (!/^req_[0-9a-f]{32}$/.test(id)) return [`x-service-request-id is '${id}'.`];
  return ["x-request-id", "request-id"].filter((name) => headers.get(name) !== id).map((name) => `${name} differs.`);
}

function answerProblems(answer: Answer, problemOf: Problems): string[] {
  const pathname = answer.path.split("?", 1)[0]!;
  const here = operationsAt(pathname);
  const method = answer.method === "HEAD" ? "get" : answer.method.toLowerCase();
  const operation = here.find((candidate) => candidate.method === method);
  if (answer.status < 400 && unlistedPaths.includes(pathname)) return [];
  if (answer.method === "HEAD" && answer.body) return ["The answer to HEAD has a body."];
  const said = operation?.success;
  const known = answer.status === (said?.status ?? 200) ? said : said?.also?.[answer.status];
  if (known) return [...undescribed(answer, known.headers), ...successProblems(answer, known.content, problemOf)];
  const { status } = answer;
  const other = operation?.otherFaults && !statusesOf(operation.faults).includes(status);
  const carried = operation ? faultHeadersOf(operation, other ? "default" : status) : [];
  return [
    ...undescribed(answer, [...carried, ...faultHeaders(status)]),
    ...faultProblems(answer, here, operation, problemOf),
  ];
}

/** Headers that the contract describes, but not for this response. */
function undescribed({ headers }: Answer, described: readonly string[]): string[] {
  return Object.keys(contractHeaders)
    .filter((name) => !identities.includes(name) && headers.has(name) && !described.includes(name))
    .map((name) => `The header '${name}' is not described here.`);
}
const identities = ["x-service-request-id", "x-request-id", "request-id"];

/**
 * The operations whose path matches. Several may match, because an ID may contain a slash; then the longest path is the
 * one that was requested.
 */
function operationsAt(pathname: string): Operation[] {
  const fitting = described.filter((operation) => matches(operation, pathname));
  const longest = Math.max(...fitting.map(({ path }) => path.length));
  return fitting.filter(({ path }) => path.length === longest);
}

function matches({ path }: Operation, pathname: string): boolean {
  if (!path.includes("{")) return path === pathname;
  const [before, after] = path.split(/\{[^}]+\}/) as [string, string];
  return pathname.startsWith(before) && pathname.endsWith(after) && pathname.length > before.length + after.length;
}

function mediaType(headers: ReadHeaders): string {
  return (headers.get("content-type") ?? "").split(";", 1)[0]!.trim();
}

function successProblems(
  { headers, body, method }: Answer,
  content: Record<string, Content>,
  problemOf: Problems,
): string[] {
  const type = mediaType(headers);
  const described = content[type];
  if (!described) return [`The content type '${type}' is not described.`];
  if (body === null || method === "HEAD") return [];
  if (described.grammar) return streamProblems[described.grammar](body, described.schema, problemOf);
  return type === "application/json" ? jsonProblems(body, described.schema, problemOf) : [];
}

function jsonProblems(body: string, schema: TSchema, problemOf: Problems): string[] {
  const value = parsed(body);
  return value === undefined ? [`The body is not JSON: ${body.slice(0, 100)}`] : problemOf(schema, value);
}

function faultProblems(answer: Answer, here: Operation[], operation: Operation | undefined, problemOf: Problems) {
  const { status, headers, body } = answer;
  const value = body === null ? undefined : parsed(body);
  const problems = isBeyondWholeLimit(value) ? retriedInVain(headers) : missingHeaders(status, headers);
  if (answer.method === "HEAD" || body === null) return problems;
  if (mediaType(headers) !== "application/json") return [...problems, `Content type '${mediaType(headers)}'.`];
  const schema = schemaOfFault(value, here[0]);
  problems.push(...problemOf(schema, value));
  if (problems.length > 0) return problems;
  const { code, type, requestId } = said(value as ChatError | ResponsesError | MessagesError);
  if (requestId !== headers.get("x-service-request-id")) problems.push("request_id is not that of the headers.");
  if (code === null) return problems;
  const known = faultCatalogue[code];
  // Claude Code recognizes by the type `billing_error` that the usage window of its sign-in is exhausted.
  const isSignIns = headers.has("anthropic-ratelimit-unified-overage-disabled-reason");
  const itsType = isSignIns ? "billing_error" : typeOf(code, schema);
  if (known.status !== status) problems.push(`'${code}' belongs to status ${known.status}.`);
  if (itsType !== type) problems.push(`'${code}' has the type '${itsType}', not '${type}'.`);
  const common: readonly string[] = commonFaults;
  if (!common.includes(code) && !operation?.otherFaults && !operation?.faults.includes(code))
    problems.push(`'${code}' is not described for this operation.`);
  return problems;
}

function missingHeaders(status: number, headers: ReadHeaders): string[] {
  const optional: string[] = status === 429 || status === 503 ? ["x-should-retry"] : [];
  // Clients wait for as long as a 429 says. So a 429 has no `retry-after` where a wait of up to a minute would not
  // help.
  if (status === 429 && headers.get("x-should-retry") === "false") optional.push("retry-after");
  const isLong = status === 429 && Number(headers.get("retry-after")) > 60;
  return [
    ...(isLong ? ["A 429 asks for a wait of more than a minute."] : []),
    ...faultHeaders(status)
      .filter((name) => !(optional.includes(name) || headers.has(name)))
      .map((name) => `The header '${name}' is missing.`),
  ];
}

/**
 * Whether the request would exceed a limit even if nothing of the limit was used yet; such an error names the limit.
 */
function isBeyondWholeLimit(value: unknown): boolean {
  const { error } = (value ?? {}) as { error?: { limit?: unknown; details?: { limit?: unknown } } };
  return (error?.limit ?? error?.details?.limit) !== undefined;
}

/**
 * The problems of the headers of an error that no wait can resolve: headers that would make a client wait and retry.
 */
function retriedInVain(headers: ReadHeaders): string[] {
  const waits = ["retry-after", ...resetHeaders].filter((name) => headers.has(name));
  const problems = waits.map((name) => `There is nothing to wait for, but the header '${name}' is there.`);
  return headers.get("x-should-retry") === "false" ? problems : [...problems, "x-should-retry is not 'false'."];
}
const resetHeaders = Object.keys(contractHeaders).filter((name) => name.includes("reset"));

/** The schema of an error body. If two shapes are possible, the value itself says which one it has. */
function schemaOfFault(value: unknown, operation: Operation | undefined): TSchema {
  const { schemas } = faultShapes[operation ? (operation.faultShape ?? "error") : "client"];
  const claimed = (value as { type?: unknown } | undefined)?.type === "error" ? MessagesError : ChatError;
  return schemas.includes(claimed) ? claimed : schemas[0]!;
}

function typeOf(code: FaultCode, schema: TSchema): string {
  if (schema === MessagesError) return faultCatalogue[code].messages;
  return schema === ResponsesError && code === "usage_limit_reached" ? code : faultCatalogue[code].type;
}

function said(value: ChatError | ResponsesError | MessagesError): {
  code: FaultCode | null;
  type: string;
  requestId: string;
} {
  if ("type" in value) {
    const code = value.error.details?.error_code ?? null;
    const ours = code === "thread_unsupported_request" ? "unsupported_feature" : code;
    return { code: ours as FaultCode | null, type: value.error.type, requestId: value.request_id };
  }
  const { code, type, request_id } = value.error;
  return { code: code as FaultCode | null, type, requestId: request_id };
}
