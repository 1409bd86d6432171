/**
 * State, by the protocol's own rules, as far as it is pure: which stored things a request refers to, the request with
 * what they are, and what is to be kept of a response. Ids of items are made from the id of their response, so that a
 * reference to an item names its response, and no index of items is needed.
 */
import { Fault } from "../../inference/fault.ts";
import { violationFault } from "../violation.ts";
import type { InputItem, ItemReference, OutputItem, ResponseObject, ResponsesRequest } from "./contract.ts";
import { firstEarlyTrigger, firstOrphan } from "./conversation.ts";

/** Under a symbol, because no body can hold one: what stands here was read from the store. */
const resolved = Symbol("resolved");
type Resolved = { [resolved]?: { history: readonly InputItem[]; items: ReadonlyMap<string, InputItem> } };

export interface References {
  /** `previous_response_id`: its whole conversation is wanted. */
  previousResponseId: string | null;
  /** Items named by `item_reference`; `responseId` is null where the id has not the form of ours, so that none can have it. */
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

/** Whether anything stored is referred to. */
export function refersTo({ previousResponseId, items }: References): boolean {
  return previousResponseId !== null || items.length > 0;
}

/** The stored items that references led to; `history` is null where the previous response was not found. */
export interface Found {
  history: readonly InputItem[] | null;
  items: ReadonlyMap<string, InputItem>;
}

/**
 * The request with what was stored in place of what refers to it. `history` is the conversation of the previous response,
 * oldest first: of each response its own input, then its output. Throws `previous_response_not_found` for a reference
 * that was not found, and `invalid_value` for a tool's output whose call is nowhere.
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
  const told = conversationOf(whole);
  const items_told = told.map(({ item }) => item);
  const pathOf = (at: number) => told[at]!.param;
  const broken = firstOrphan(items_told, pathOf) ?? firstEarlyTrigger(items_told, pathOf);
  if (broken) throw violationFault(broken);
  return whole;
}

export function notFound(param: string): Fault {
  const what = param === "previous_response_id" ? "a response" : "an item of a response";
  const message = `'${param}' must be the id of ${what} that is still stored. Send the items of the conversation instead.`;
  return new Fault("previous_response_not_found", message, { param });
}

/** An item as it was told. There may be a hundred thousand, so nothing else is kept of each. */
export class Told {
  constructor(
    readonly item: Exclude<InputItem, ItemReference>,
    readonly place: number | "input" | "previous_response_id",
  ) {}

  /** Its path in the body; what the store told has the path of what refers to it. */
  get param(): string {
    return typeof this.place === "number" ? `input[${this.place}]` : this.place;
  }
}

/** All items, oldest first. Throws where something stored is referred to and was not resolved. */
export function conversationOf(wire: ResponsesRequest): Told[] {
  const known = (wire as ResponsesRequest & Resolved)[resolved];
  if (wire.previous_response_id && !known) throw notFound("previous_response_id");
  const told: Told[] = [];
  for (const item of known?.history ?? []) {
    if (item.type !== "item_reference") told.push(new Told(item, "previous_response_id"));
  }
  if (typeof wire.input === "string") {
    told.push(new Told({ type: "message", role: "user", content: wire.input }, "input"));
    return told;
  }
  for (const [at, item] of wire.input.entries()) {
    const real = item.type === "item_reference" ? known?.items.get(item.id) : item;
    if (!real || real.type === "item_reference") throw notFound(`input[${at}].id`);
    told.push(new Told(real, at));
  }
  return told;
}

/** Lists of tools among the items say what calls are named; what is to be stored needs all of it. */
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

/** The same with these items as its whole conversation. */
export function withInput(wire: ResponsesRequest, input: InputItem[]): ResponsesRequest {
  const rest: ResponsesRequest & Resolved = { ...wire, input, [resolved]: { history: [], items: new Map() } };
  return rest;
}

/** Whether the conversation is to be told in short, and not answered. */
export function isCompaction({ input }: Pick<ResponsesRequest, "input">): boolean {
  return typeof input !== "string" && input.at(-1)?.type === "compaction_trigger";
}

// ---- what is kept ----------------------------------------------------------------------------------------------------

/** An item as the store has it and `input_items` shows it. */
export type StoredItem = (InputItem | OutputItem) & { id: string };

/** What a response adds to its conversation. */
export interface StoredTurn {
  /** What its request said itself, references resolved; what came before it stands in the previous response. */
  input: readonly StoredItem[];
  output: readonly OutputItem[];
}

export interface Stored extends StoredTurn {
  id: string;
  previousResponseId: string | null;
  /** As the client got it. */
  response: Omit<ResponseObject, "output">;
}

/** Null where nothing is to be kept: `store: false`, or an answer that failed. */
export function storable(wire: ResponsesRequest, response: ResponseObject): Stored | null {
  if (wire.store === false || response.status === "failed" || response.status === "in_progress") return null;
  const own = conversationOf(wire).filter(({ place }) => place !== "previous_response_id");
  const input = own.map(({ item }, at): StoredItem => ({ ...item, id: itemIdOf(response.id, item.type, at, "input") }));
  const { output, ...rest } = response;
  // A summary stands in place of all that came before it.
  const previousResponseId = isCompaction(wire) ? null : (wire.previous_response_id ?? null);
  return { id: response.id, previousResponseId, input, output, response: rest };
}

/** The conversation that a response ends: what `withResolved` takes for its history. Oldest first, the response last. */
export function historyOf(turns: readonly StoredTurn[]): InputItem[] {
  return turns.flatMap(({ input, output }) =>
    itemsOf(output.some(({ type }) => type === "compaction") ? { input: [], output } : { input, output }),
  );
}

/** The item of that id among what is stored of its response. */
export function itemOf(turn: StoredTurn, id: string): InputItem | null {
  return itemsOf(turn).find((item) => item.id === id) ?? null;
}

/** What was answered is an item that may be sent: its status and its marks are passed over. */
function itemsOf({ input, output }: StoredTurn): (InputItem & { id: string })[] {
  return [...input, ...output] as unknown as (InputItem & { id: string })[];
}

/** A stored input as it is shown: what a message says is a list of parts, however it was sent. */
export function publicItem(item: StoredItem): StoredItem {
  if (item.type !== "message" || typeof item.content !== "string") return item;
  const part =
    item.role === "assistant"
      ? { type: "output_text" as const, text: item.content, annotations: [] }
      : { type: "input_text" as const, text: item.content };
  return { ...item, content: [part] } as StoredItem;
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
/** Inputs are counted from here, so that no output has the id of an input. */
const inputsFrom = 0x1000000;

/** The same for the same place: in every event, in the final object, and in the store. */
export function itemIdOf(responseId: string, type: string, index: number, side: "input" | "output" = "output"): string {
  const place = side === "input" ? inputsFrom + index : index;
  return `${prefixes[type] ?? "item"}_${responseId.slice(-32)}${place.toString(16).padStart(4, "0")}`;
}

const itemIdForm = /^[a-z]{2,4}_([0-9a-f]{32})([0-9a-f]{4,8})$/;

/** Whether an item was said by a request, and not answered. */
export function isInputId(itemId: string): boolean {
  return Number.parseInt(itemIdForm.exec(itemId)?.[2] ?? "", 16) >= inputsFrom;
}

/** The response that an item belongs to. */
export function responseIdOf(itemId: string): string | null {
  const hex = itemIdForm.exec(itemId)?.[1];
  return hex ? `resp_${hex}` : null;
}
