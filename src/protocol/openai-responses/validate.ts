/**
 * A body that claims to be a Responses request becomes one, or the fault that says what to change: first the shape
 * (contract.ts), then the rules between fields, each time the first offence. What it refers to is looked up by others.
 */
import { compact } from "../../inference/compact.ts";
import { contract } from "../contract.ts";
import { isObject, type JsonObject } from "../json.ts";
import { firstBrokenRule, given, type Rules } from "../rules.ts";
import {
  describe,
  looksSecret,
  named,
  notSupported,
  oneOfWords,
  type Violation,
  violationFault,
} from "../violation.ts";
import {
  hostedTools,
  type InputItem,
  type NamedTool,
  type ResponsesRequest,
  TypedCompactRequest,
  TypedInputTokensRequest,
  TypedResponsesRequest,
} from "./contract.ts";
import { firstEarlyTrigger, firstOrphan, strangePart } from "./conversation.ts";
import { isCompaction, referencesOf } from "./references.ts";
import { isHosted, listedTools, ToolBook } from "./tools.ts";

const request = contract(TypedResponsesRequest);
const compacted = contract(TypedCompactRequest);
const count = contract(TypedInputTokensRequest);

/** The body as a request. Throws a Fault: `missing_field`, `invalid_value` or `unsupported_feature`. */
export function validateResponsesRequest(body: unknown): ResponsesRequest {
  const typed = withTypes(body);
  if (!request.satisfied(typed)) throw violationFault(withoutSource(typed, request) ?? request.violation(typed));
  const broken = firstBrokenRule(typed, rules);
  if (broken) throw violationFault(broken);
  return typed;
}

/** The body of a request to compact, as the request that asks for the summary. */
export function validateCompactRequest(body: unknown): ResponsesRequest {
  const typed = withTypes(body);
  if (!compacted.satisfied(typed)) throw violationFault(withoutSource(typed, compacted) ?? compacted.violation(typed));
  const told = toldIn(typed);
  const input = isCompaction({ input: told }) ? told : [...told, { type: "compaction_trigger" as const }];
  const { model, instructions, previous_response_id, prompt_cache_key, reasoning } = typed;
  const more = compact({ instructions, previous_response_id, prompt_cache_key, reasoning });
  return coherent({ model, input, store: false, ...more });
}

/** The body of a count. What would be refused of a request for an answer is counted as far as it is understood. */
export function validateInputTokens(body: unknown): ResponsesRequest {
  const typed = withTypes(body);
  if (!count.satisfied(typed)) throw violationFault(withoutSource(typed, count) ?? count.violation(typed));
  const { model, instructions, previous_response_id, tools, text, reasoning } = typed;
  const more = compact({ instructions, previous_response_id, tools, text, reasoning });
  return coherent({ model, input: toldIn(typed), ...more });
}

function coherent(asked: ResponsesRequest): ResponsesRequest {
  const broken = conversation(asked);
  if (broken) throw violationFault(broken);
  return asked;
}

interface Telling {
  input?: ResponsesRequest["input"] | null;
  previous_response_id?: string | null;
}

/** The input items of the body itself. Throws where there is no input, there or in a previous response. */
function toldIn({ input, previous_response_id: previous }: Telling): InputItem[] {
  if (typeof input === "string") return [{ type: "message", role: "user", content: input }];
  if (input) return input;
  if (previous) return [];
  const message = "'input' or 'previous_response_id' is required.";
  throw violationFault({ code: "missing_field", param: "input", message });
}

/**
 * An item with a role and no type is a message, one with an id alone a reference: several clients write them so. The body
 * itself stays as it was parsed: its bytes may be handed on (own-bytes.ts).
 */
function withTypes(body: unknown): unknown {
  if (!isObject(body) || !Array.isArray(body.input) || body.input.every((item) => impliedType(item) === null))
    return body;
  return { ...body, input: body.input.map(withType) };
}

function withType(item: unknown): unknown {
  const type = impliedType(item);
  return type === null ? item : { ...(item as JsonObject), type };
}

function impliedType(item: unknown): "message" | "item_reference" | null {
  if (!isObject(item) || given(item.type)) return null;
  if (item.role !== undefined) return "message";
  return typeof item.id === "string" && item.content === undefined ? "item_reference" : null;
}

/** A medium by id or URL lacks what it could be sent as, too; it is told as what it is. */
function withoutSource(body: unknown, by: { violation(body: unknown): Violation }): Violation | null {
  const found = by.violation(body);
  const path = /^(input\[(\d+)\]\.(content|output)\[(\d+)\])\.(image_url|file_data)$/.exec(found.param);
  if (!path || found.code !== "missing_field") return null;
  const item = ((body as JsonObject).input as JsonObject[])[Number(path[2])];
  const part = (item?.[path[3]!] as JsonObject[] | undefined)?.[Number(path[4])];
  const key = ["file_id", "file_url"].find((name) => given(part?.[name]));
  return key === undefined
    ? null
    : notSupported(`${path[1]}.${key}`, key === "file_id" ? "files by id" : "files by URL");
}

const rules: Rules<ResponsesRequest> = [
  ["input", conversation],
  ["tools", callableTools],
  ["tool_choice", choosableTool],
];

function itemsOf({ input }: ResponsesRequest): InputItem[] {
  return typeof input === "string" ? [] : input;
}

/** What is stored elsewhere may hold the calls that outputs answer; they are held against it when it was found. */
function conversation(body: ResponsesRequest): Violation | null {
  const told = itemsOf(body);
  const pathOf = (at: number) => `input[${at}]`;
  for (let at = 0; at < told.length; at++) {
    const strange = strangePart(told[at]!, () => pathOf(at));
    if (strange) return strange;
  }
  const early = firstEarlyTrigger(told, pathOf);
  if (early) return early;
  const { previousResponseId, items } = referencesOf(body);
  return previousResponseId === null && items.length === 0 ? firstOrphan(told, pathOf) : null;
}

function bookOf(body: ResponsesRequest) {
  const listed = listedTools(
    body,
    itemsOf(body).map((item) => ({ item })),
  );
  return { listed, book: new ToolBook(listed) };
}

/** Agents list hosted tools on every request; a request that has no other wants one of them. */
function callableTools(body: ResponsesRequest): Violation | null {
  const at = (body.tools ?? []).findIndex(isHosted);
  const hosted = body.tools?.[at];
  if (!hosted || !isHosted(hosted) || bookOf(body).book.tools.length > 0) return null;
  return notSupported(`tools[${at}].type`, named(hostedTools[hosted.type], hosted.type));
}

function choosableTool(body: ResponsesRequest): Violation | null {
  const { tool_choice: choice } = body;
  if (!choice || choice === "auto" || choice === "none") return null;
  const { book } = bookOf(body);
  if (choice === "required") {
    if (book.tools.length > 0) return null;
    const message = "'tool_choice' requires callable 'tools'. Add tools, or remove 'tool_choice'.";
    return { code: "invalid_value", param: "tool_choice", message };
  }
  const chosen: [NamedTool, string][] =
    choice.type === "allowed_tools"
      ? choice.tools.map((tool, at) => [tool, `tool_choice.tools[${at}].name`])
      : [[choice, "tool_choice.name"]];
  const stray = chosen.find(([{ name, namespace }]) => !book.has(name, namespace));
  if (!stray) return null;
  const names = book.tools.map(({ tool }) => tool.name).filter((name) => !looksSecret(name));
  const among =
    names.length === 0 ? "" : ` (${oneOfWords(names.slice(0, 16))}${names.length > 16 ? " and others" : ""})`;
  const message = `'${stray[1]}' must name one of 'tools'${among}, but is ${describe(stray[0].name)}.`;
  return { code: "invalid_value", param: stray[1], message };
}
