/**
 * Whether an answer is one that the contract describes: for tests, which hold every answer of a run against it. Stricter
 * than the contract is to clients: a field that it does not name is a finding here, though clients must expect new ones.
 */
import type { TSchema } from "typebox";
import { faultCatalogue } from "../../inference/fault.ts";
import { type Contract, contract } from "../../protocol/contract.ts";
import { ChatError } from "../../protocol/openai-chat/contract.ts";
import { docsScriptPath } from "./docs.ts";
import { commonFaults, faultHeaders } from "./faults.ts";
import type { Operation } from "./operation.ts";
import { operations } from "./operations.ts";

export interface Answer {
  method: string;
  /** Path and query, as requested. */
  path: string;
  status: number;
  headers: ReadHeaders;
  /** Null when it was not read to its end; then only status and headers are judged. */
  body: string | null;
}

/** The part of a Headers object that is looked at: two platforms' types of it do not agree on the rest. */
export interface ReadHeaders {
  get(name: string): string | null;
  has(name: string): boolean;
}

/** What is wrong with an answer, each in a sentence; empty when it conforms. Schemas are compiled as they are needed. */
export function responseValidator(): (answer: Answer) => string[] {
  const compiled = new Map<TSchema, Contract<unknown>>();
  const problemOf = (schema: TSchema, value: unknown): string[] => {
    let shape = compiled.get(schema);
    if (!shape) {
      shape = contract(closed(schema) as TSchema) as Contract<unknown>;
      compiled.set(schema, shape);
    }
    return shape.satisfied(value) ? [] : [shape.violation(value).message];
  };
  return (answer) => {
    const where = `${answer.method} ${answer.path.slice(0, 100)} → ${answer.status}`;
    return [...identityProblems(answer), ...answerProblems(answer, problemOf)].map((problem) => `${where}: ${problem}`);
  };
}

type Problems = (schema: TSchema, value: unknown) => string[];

/** Served, and no part of the contract: what the page loads, and what only an operator reads. */
const unlistedPaths: readonly string[] = [docsScriptPath, "/metrics"];

function identityProblems({ headers }: Answer): string[] {
  const id = headers.get("x-service-request-id") ?? "";
  if (!/^req_[0-9a-f]{32}$/.test(id)) return [`x-service-request-id is '${id}'.`];
  return ["x-request-id", "request-id"].filter((name) => headers.get(name) !== id).map((name) => `${name} differs.`);
}

function answerProblems(answer: Answer, problemOf: Problems): string[] {
  const pathname = answer.path.split("?", 1)[0]!;
  const here = operations.filter((operation) => matches(operation, pathname));
  const method = answer.method === "HEAD" ? "get" : answer.method.toLowerCase();
  const operation = here.find((candidate) => candidate.method === method);
  if (answer.status < 400 && unlistedPaths.includes(pathname)) return [];
  if (answer.method === "HEAD" && answer.body) return ["The answer to HEAD has a body."];
  const said = operation?.success;
  const described = answer.status === 200 ? said : said?.also?.[answer.status];
  if (described) return successProblems(answer, described.content, problemOf);
  return faultProblems(answer, operation, problemOf);
}

function matches(operation: Operation, pathname: string): boolean {
  if (!operation.path.includes("{")) return operation.path === pathname;
  const [before, after] = operation.path.split(/\{[^}]+\}/) as [string, string];
  return pathname.startsWith(before) && pathname.endsWith(after) && pathname.length > before.length + after.length;
}

function mediaType(headers: ReadHeaders): string {
  return (headers.get("content-type") ?? "").split(";", 1)[0]!.trim();
}

function successProblems(
  { headers, body, method }: Answer,
  content: Record<string, { schema: TSchema }>,
  problemOf: Problems,
): string[] {
  const type = mediaType(headers);
  const described = content[type];
  if (!described) return [`The content type '${type}' is not described.`];
  if (body === null || method === "HEAD") return [];
  if (type === "text/event-stream") return streamProblems(body, described.schema, problemOf);
  return type === "application/json" ? jsonProblems(body, described.schema, problemOf) : [];
}

function jsonProblems(body: string, schema: TSchema, problemOf: Problems): string[] {
  const value = parsed(body);
  return value === undefined ? [`The body is not JSON: ${body.slice(0, 100)}`] : problemOf(schema, value);
}

function faultProblems(answer: Answer, operation: Operation | undefined, problemOf: Problems): string[] {
  const { status, headers, body } = answer;
  const problems = faultHeaders(status)
    .filter((name) => name !== "x-should-retry" && !headers.has(name))
    .map((name) => `The header '${name}' is missing.`);
  if (answer.method === "HEAD" || body === null) return problems;
  if (mediaType(headers) !== "application/json") return [...problems, `Content type '${mediaType(headers)}'.`];
  problems.push(...jsonProblems(body, ChatError, problemOf));
  const error = (parsed(body) as Partial<ChatError> | undefined)?.error;
  if (problems.length > 0 || !error) return problems;
  if (error.request_id !== headers.get("x-service-request-id")) problems.push("request_id is not that of the headers.");
  if (error.code === null) return problems;
  const { status: statusOfCode, type } = faultCatalogue[error.code];
  if (statusOfCode !== status) problems.push(`'${error.code}' belongs to status ${statusOfCode}.`);
  if (type !== error.type) problems.push(`'${error.code}' has the type '${type}', not '${error.type}'.`);
  const common: readonly string[] = commonFaults;
  if (!common.includes(error.code) && !operation?.otherFaults && !operation?.faults.includes(error.code))
    problems.push(`'${error.code}' is not described for this operation.`);
  return problems;
}

/** Frames of one data line or of comments; chunks, then perhaps an error, then exactly one `[DONE]`, then nothing. */
function streamProblems(body: string, chunk: TSchema, problemOf: Problems): string[] {
  const problems: string[] = [];
  const frames = body.split("\n\n");
  if (frames.pop() !== "") problems.push("The stream does not end with a blank line.");
  const events = frames.filter((frame) => !frame.split("\n").every((line) => line.startsWith(":")));
  const stray = events.find((frame) => !frame.startsWith("data: ") || frame.includes("\n"));
  if (stray !== undefined) problems.push(`A frame is not one data line: ${stray.slice(0, 100)}`);
  const data = events.map((frame) => frame.slice("data: ".length));
  if (data.pop() !== "[DONE]") problems.push("The stream does not end with [DONE].");
  const ids = new Set<unknown>();
  for (const [index, text] of data.entries()) {
    const value = parsed(text);
    if (isError(value)) {
      problems.push(...problemOf(ChatError, value));
      if (index < data.length - 1) problems.push("Something follows the error.");
    } else {
      problems.push(...problemOf(chunk, value ?? text));
      ids.add((value as { id?: unknown } | undefined)?.id);
    }
  }
  if (ids.size > 1) problems.push("The id changes within the stream.");
  return problems;
}

function isError(value: unknown): boolean {
  return typeof value === "object" && value !== null && "error" in value;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The same schema, where objects that do not say whether they are open are closed. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== "object" || schema === null) return schema;
  const inner = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, closed(value)]));
  const isOpenObject = inner.type === "object" && "properties" in inner && !("additionalProperties" in inner);
  return isOpenObject ? { ...inner, additionalProperties: false } : inner;
}
