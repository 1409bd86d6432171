/**
 * The references in a request to stored responses and items: finds them, and puts stored items in their place. The id
 * of an item contains the id of its response, so items need no index.
 */
import { Fault } from "../../inference/fault.ts";
import { invalid, unanswering, type Violation, violationFault } from "../violation.ts";
import { type InputItem, type ItemReference, type ResponsesRequest, userParts } from "./contract.ts";

/**
 * The key under which a request keeps the items that were read from the store. A symbol, because no JSON body can have
 * a symbol as a key.
 */
const resolved = Symbol("resolved");
type Resolved = { [resolved]?: { history: readonly InputItem[]; items: ReadonlyMap<string, InputItem> } };

export interface References {
  /**
   * The id of the previous response, to whose whole conversation the request refers; null: the request names no
   * previous response.
   */
  previousResponseId: string | null;
  /** The items that `item_reference` names. `responseId`: null if this service cannot have made the id. */
  items: { id: string; responseId: string | null; param: string }[];
}

export function referencesOf(wire: ResponsesRequest): References {
  const items: References["items"] = [];
  if (typeof wire.input !== "string") {
    for (const [at, item] of wire.input.entries()) {
      if (item.type === "item_reference")
        items.push({ id: item.id, responseId: responseIdOf(item.id), param: `input[${at}].id` });
    }
  }
  return { previousResponseId: wire.previous_response_id ?? null, items };
}

export function refersTo({ previousResponseId, items }: References): boolean {
  return previousResponseId !== null || items.length > 0;
}

/** The stored items that a request's references name. `history` is null if the previous response was not found. */
export interface Found {
  history: readonly InputItem[] | null;
  items: ReadonlyMap<string, InputItem>;
}

/**
 * The request with stored items in place of references. `history`: the conversation of the previous response, oldest
 * first, with the input of each response before its output. Throws `previous_response_not_found` for a reference that
 * was not found, and `invalid_value` for a tool's output without its call.
 */
export function withResolved(wire: ResponsesRequest, found: Found): ResponsesRequest {
  const { previousResponseId, items } = referencesOf(wire);
  if (previousResponseId !== null && found.history === null) throw notFound("previous_response_id");
  const missing = items.find(({ id }) => !found.items.has(id));
  if (missing) throw notFound(missing.param);
  const whole: ResponsesRequest & Resolved = {
    ...wire,
    [resolved]: { history: found.history ?? [], items: found.items },
  };
  const conversation = conversationOf(whole);
  const all = conversation.map(({ item }) => item);
  const pathOf = (at: number) => conversation[at]!.param;
  const broken = firstOrphan(all, pathOf) ?? firstEarlyTrigger(all, pathOf);
  if (broken) throw violationFault(broken);
  return whole;
}

export function notFound(param: string): Fault {
  const what = param === "previous_response_id" ? "a response" : "an item of a response";
  const message = `'${param}' must be the id of ${what} that is still stored. Send the items of the conversation instead.`;
  return new Fault("previous_response_not_found", message, { param });
}

/** An item with its position in the request. There may be a hundred thousand of them, so it has no further fields. */
export class PlacedItem {
  constructor(
    readonly item: Exclude<InputItem, ItemReference>,
    readonly place: number | "input" | "previous_response_id",
  ) {}

  /** The path of the item in the body; for a stored item, the path of its reference. */
  get param(): string {
    return typeof this.place === "number" ? `input[${this.place}]` : this.place;
  }
}

/** All items of the conversation, the oldest first. Throws a Fault for a reference that was not resolved. */
export function conversationOf(wire: ResponsesRequest): PlacedItem[] {
  const stored = (wire as ResponsesRequest & Resolved)[resolved];
  if (wire.previous_response_id && !stored) throw notFound("previous_response_id");
  const items: PlacedItem[] = [];
  for (const item of stored?.history ?? []) {
    if (item.type !== "item_reference") items.push(new PlacedItem(item, "previous_response_id"));
  }
  if (typeof wire.input === "string") {
    items.push(new PlacedItem({ type: "message", role: "user", content: wire.input }, "input"));
    return items;
  }
  for (const [at, item] of wire.input.entries()) {
    const real = item.type === "item_reference" ? stored?.items.get(item.id) : item;
    if (!real || real.type === "item_reference") throw notFound(`input[${at}].id`);
    items.push(new PlacedItem(real, at));
  }
  return items;
}

/**
 * The part of the request that is needed to write its answer. If the response is to be stored, that is the whole
 * request; else its input has only the items that name tools or ask for a compaction.
 */
export function remainder(wire: ResponsesRequest): ResponsesRequest {
  if (wire.store !== false) return wire;
  return withInput(
    wire,
    conversationOf(wire)
      .filter(({ item }) => keptTypes.has(item.type))
      .map(({ item }) => item),
  );
}

const keptTypes: ReadonlySet<string> = new Set(["additional_tools", "compaction_trigger"]);

/** The request with these items as its whole conversation. */
export function withInput(wire: ResponsesRequest, input: InputItem[]): ResponsesRequest {
  const rest: ResponsesRequest & Resolved = { ...wire, input, [resolved]: { history: [], items: new Map() } };
  return rest;
}

/** Reports whether the request asks for a summary of the conversation, and not for an answer. */
export function isCompaction({ input }: Pick<ResponsesRequest, "input">): boolean {
  return typeof input !== "string" && input.at(-1)?.type === "compaction_trigger";
}

// ---- rules of a conversation beyond the shape of its items ------------------------------------------------------------

/** The violation of the first tool output that has no earlier call. */
export function firstOrphan(items: readonly InputItem[], pathOf: (at: number) => string): Violation | null {
  const calls = new Set<string>();
  for (let at = 0; at < items.length; at++) {
    const item = items[at]!;
    if (item.type === "function_call" || item.type === "custom_tool_call") calls.add(item.call_id);
    if (item.type !== "function_call_output" && item.type !== "custom_tool_call_output") continue;
    if (calls.has(item.call_id)) continue;
    return unanswering(`${pathOf(at)}.call_id`, item.call_id, "an earlier call", "the item of the call");
  }
  return null;
}

/** The violation of an item that asks for a summary of the conversation and is not the last one. */
export function firstEarlyTrigger(items: readonly InputItem[], pathOf: (at: number) => string): Violation | null {
  const at = items.findIndex(({ type }) => type === "compaction_trigger");
  if (at === -1 || at === items.length - 1) return null;
  return invalid(
    pathOf(at),
    "asks for a summary of the conversation, and must be the last item. Remove it, or move it to the end.",
  );
}

/** The violation of the first image or file in a message that is not the user's: no protocol has a place for it. */
export function misplacedPart(item: InputItem, path: () => string): Violation | null {
  if (item.type !== "message" || item.role === "user" || typeof item.content === "string") return null;
  const at = item.content.findIndex(({ type }) => userParts.includes(type));
  if (at === -1) return null;
  const what = item.content[at]?.type === "input_image" ? "an image" : "a file";
  const param = `${path()}.content[${at}].type`;
  const message = `This service does not support ${what} in this role, which '${param}' asks for. Send it in a user message.`;
  return { code: "unsupported_feature", param, message };
}

// ---- ids -------------------------------------------------------------------------------------------------------------

const prefixes: Partial<Record<string, string>> = {
  message: "msg",
  function_call: "fc",
  function_call_output: "fco",
  custom_tool_call: "ctc",
  custom_tool_call_output: "ctco",
  reasoning: "rs",
  additional_tools: "at",
  configuration_update: "cu",
  compaction: "cmp",
  compaction_trigger: "cmpt",
};
/** The id of an item, made from its number: the same in every event, in the final object, and in the store. */
export function itemIdOf(responseId: string, type: string, index: number): string {
  return `${prefixes[type] ?? "item"}_${responseId.slice(-32)}${index.toString(16).padStart(4, "0")}`;
}

export const itemIdForm = /^[a-z]{2,4}_([0-9a-f]{32})([0-9a-f]{4,8})$/;

/** The id of the response to which an item belongs; null if the item's id has another form. */
function responseIdOf(itemId: string): string | null {
  const hex = itemIdForm.exec(itemId)?.[1];
  return hex ? `resp_${hex}` : null;
}
