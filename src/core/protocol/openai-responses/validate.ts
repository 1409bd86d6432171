/**
 * Validates the body of a Responses request: first its shape (contract.ts), then the rules between fields. It reports the first
 * offence. References to stored responses are resolved elsewhere (references.ts).
 */
import { type Contract, contract, type UncheckedItems } from "../contract.ts";
import { compact, isGiven, isObject, type JsonObject } from "../json.ts";
import { obeying, type Rules } from "../rules.ts";
import {
  choiceWithoutTools,
  featureNamed,
  notSupported,
  unlistedTool,
  type Violation,
  violationFault,
} from "../violation.ts";
import {
  hostedTools,
  type InputItem,
  type ResponsesRequest,
  TypedCompactRequest,
  TypedInputTokensRequest,
  TypedResponsesRequest,
} from "./contract.ts";
import { firstEarlyTrigger, firstOrphan, isCompaction, misplacedPart, referencesOf, refersTo } from "./references.ts";
import { isHosted, listedTools, ToolBook } from "./tools.ts";

/** The names of the fields that agents send again with every turn. */
export const responsesRepeats = ["instructions", "input", "tools"] as const;
const request = contract(TypedResponsesRequest, { repeated: responsesRepeats });
const compacted = contract(TypedCompactRequest);
const count = contract(TypedInputTokensRequest);

/**
 * Returns the body as a request. `unchecked`: see Contract. Throws a Fault: `missing_field`, `invalid_value` or
 * `unsupported_feature`.
 */
export function validateResponsesRequest(body: unknown, unchecked: UncheckedItems | null = null): ResponsesRequest {
  const typed = unchecked?.input ? { ...unchecked, input: unchecked.input.map(withType) } : unchecked;
  return obeying(shaped(body, request, typed), rules);
}

/** Returns the body of a request to compact, as a request with a `compaction_trigger`. */
export function validateCompactRequest(body: unknown): ResponsesRequest {
  const typed = shaped(body, compacted);
  const items = inputItems(typed);
  const input = isCompaction({ input: items }) ? items : [...items, { type: "compaction_trigger" as const }];
  const { model, instructions, previous_response_id, prompt_cache_key, reasoning } = typed;
  const more = compact({ instructions, previous_response_id, prompt_cache_key, reasoning });
  return obeying<ResponsesRequest>({ model, input, store: false, ...more }, conversationRules);
}

/**
 * Returns the body of a request to count tokens. Fewer rules are checked than for an answer, and other fields are
 * ignored.
 */
export function validateInputTokens(body: unknown): ResponsesRequest {
  const typed = shaped(body, count);
  const { model, instructions, previous_response_id, tools, text, reasoning } = typed;
  const more = compact({ instructions, previous_response_id, tools, text, reasoning });
  return obeying<ResponsesRequest>({ model, input: inputItems(typed), ...more }, conversationRules);
}

/** Returns the body if it satisfies the contract. Throws the fault of the first violation. */
function shaped<Value>(body: unknown, by: Contract<Value>, unchecked: UncheckedItems | null = null): Value {
  const typed = withTypes(body);
  if (by.satisfied(typed, [], unchecked)) return typed;
  throw violationFault(withoutSource(typed, by) ?? by.violation(typed));
}

type Input = Pick<Partial<ResponsesRequest>, "previous_response_id"> & { input?: ResponsesRequest["input"] | null };

/** Returns the input items in the body. Throws a Fault if it has neither an input nor a previous response. */
function inputItems({ input, previous_response_id: previous }: Input): InputItem[] {
  if (typeof input === "string") return [{ type: "message", role: "user", content: input }];
  if (input) return input;
  if (previous) return [];
  const message = "'input' or 'previous_response_id' is required.";
  throw violationFault({ code: "missing_field", param: "input", message });
}

/**
 * Adds the types that several clients leave out: an item with a role is a message, and one with only an id is a reference. The
 * body itself stays unchanged, because its bytes may be sent to an engine (docs/design/service.md, The caller's own bytes).
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
  if (!isObject(item) || isGiven(item.type)) return null;
  if (item.role !== undefined) return "message";
  return typeof item.id === "string" && item.content === undefined ? "item_reference" : null;
}

/**
 * The violation of a file or image that is named by id or URL: the message is about the id or URL, and not about the
 * missing data.
 */
function withoutSource(body: unknown, by: Contract<unknown>): Violation | null {
  const found = by.violation(body);
  const path = /^(input\[(\d+)\]\.(content|output)\[(\d+)\])\.(image_url|file_data)$/.exec(found.param);
  if (!path || found.code !== "missing_field") return null;
  const item = ((body as JsonObject).input as JsonObject[])[Number(path[2])];
  const part = (item?.[path[3]!] as JsonObject[] | undefined)?.[Number(path[4])];
  const key = ["file_id", "file_url"].find((name) => isGiven(part?.[name]));
  return key === undefined
    ? null
    : notSupported(`${path[1]}.${key}`, key === "file_id" ? "files by id" : "files by URL");
}

const conversationRules: Rules<ResponsesRequest> = [["input", conversation]];
const rules: Rules<ResponsesRequest> = [...conversationRules, ["tools", callableTools], ["tool_choice", choosableTool]];

function itemsOf({ input }: ResponsesRequest): InputItem[] {
  return typeof input === "string" ? [] : input;
}

/**
 * The first violation of the conversation's rules. If the body has references, tool outputs are checked only after the
 * references are resolved, because the outputs may belong to calls in stored items.
 */
function conversation(body: ResponsesRequest): Violation | null {
  const items = itemsOf(body);
  const pathOf = (at: number) => `input[${at}]`;
  for (let at = 0; at < items.length; at++) {
    const misplaced = misplacedPart(items[at]!, () => pathOf(at));
    if (misplaced) return misplaced;
  }
  const early = firstEarlyTrigger(items, pathOf);
  if (early) return early;
  return refersTo(referencesOf(body)) ? null : firstOrphan(items, pathOf);
}

function bookOf(body: ResponsesRequest) {
  const listed = listedTools(
    body,
    itemsOf(body).map((item) => ({ item })),
  );
  return { listed, book: new ToolBook(listed) };
}

/**
 * The violation of a request that can call nothing but hosted tools. Agents list hosted tools on every request, so they
 * are refused only if there is no other tool.
 */
function callableTools(body: ResponsesRequest): Violation | null {
  const at = (body.tools ?? []).findIndex(isHosted);
  const hosted = body.tools?.[at];
  if (!hosted || !isHosted(hosted) || bookOf(body).book.tools.length > 0) return null;
  return notSupported(`tools[${at}].type`, featureNamed(hostedTools[hosted.type], hosted.type));
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
