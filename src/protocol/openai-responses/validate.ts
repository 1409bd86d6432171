/**
 * A body that claims to be a Responses request becomes one, or the fault that says what to change: first the shape
 * (contract.ts), then the rules between fields, each time the first offence. What it refers to is looked up by others.
 */
import { compact } from "../../inference/compact.ts";
import { type Contract, contract } from "../contract.ts";
import { isObject, type JsonObject } from "../json.ts";
import { given, obeying, type Rules } from "../rules.ts";
import { choiceWithoutTools, named, notSupported, unlistedTool, type Violation, violationFault } from "../violation.ts";
import {
  hostedTools,
  type InputItem,
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
  return obeying(shaped(body, request), rules);
}

/** The body of a request to compact, as the request that asks for the summary. */
export function validateCompactRequest(body: unknown): ResponsesRequest {
  const typed = shaped(body, compacted);
  const items = inputItems(typed);
  const input = isCompaction({ input: items }) ? items : [...items, { type: "compaction_trigger" as const }];
  const { model, instructions, previous_response_id, prompt_cache_key, reasoning } = typed;
  const more = compact({ instructions, previous_response_id, prompt_cache_key, reasoning });
  return obeying<ResponsesRequest>({ model, input, store: false, ...more }, conversationRules);
}

/** The body of a count. What would be refused of a request for an answer is counted as far as it is understood. */
export function validateInputTokens(body: unknown): ResponsesRequest {
  const typed = shaped(body, count);
  const { model, instructions, previous_response_id, tools, text, reasoning } = typed;
  const more = compact({ instructions, previous_response_id, tools, text, reasoning });
  return obeying<ResponsesRequest>({ model, input: inputItems(typed), ...more }, conversationRules);
}

/** The body in the shape of `by`. Throws the fault of the first field that has another. */
function shaped<Value>(body: unknown, by: Contract<Value>): Value {
  const typed = withTypes(body);
  if (by.satisfied(typed)) return typed;
  throw violationFault(withoutSource(typed, by) ?? by.violation(typed));
}

type Input = Pick<Partial<ResponsesRequest>, "previous_response_id"> & { input?: ResponsesRequest["input"] | null };

/** The input items of the body itself. Throws a Fault if it has neither an input nor a previous response. */
function inputItems({ input, previous_response_id: previous }: Input): InputItem[] {
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
function withoutSource(body: unknown, by: Contract<unknown>): Violation | null {
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

const conversationRules: Rules<ResponsesRequest> = [["input", conversation]];
const rules: Rules<ResponsesRequest> = [...conversationRules, ["tools", callableTools], ["tool_choice", choosableTool]];

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
    return book.tools.length > 0 ? null : choiceWithoutTools;
  }
  const chosen =
    choice.type === "allowed_tools"
      ? choice.tools.map((tool, at) => ({ tool, param: `tool_choice.tools[${at}].name` }))
      : [{ tool: choice, param: "tool_choice.name" }];
  const stray = chosen.find(({ tool }) => !book.has(tool.name, tool.namespace));
  const names = book.tools.map(({ tool }) => tool.name);
  return stray ? unlistedTool(stray.param, stray.tool.name, names) : null;
}
