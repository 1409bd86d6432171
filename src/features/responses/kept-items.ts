/**
 * The part of a response that is stored, and the conversation that stored responses make. Pure; the references of
 * requests to them are core's (core/protocol/openai-responses/references.ts).
 */
import type {
  InputItem,
  OutputItem,
  ResponseObject,
  ResponsesRequest,
} from "../../core/protocol/openai-responses/contract.ts";
import { conversationOf, isCompaction, itemIdForm, itemIdOf } from "../../core/protocol/openai-responses/references.ts";

/** The first number of an input item, above those of output items, so that their ids differ. */
const inputsFrom = 0x1000000;

export function isInputId(itemId: string): boolean {
  return Number.parseInt(itemIdForm.exec(itemId)?.[2] ?? "", 16) >= inputsFrom;
}

/** An item as it is stored, and as `input_items` returns it. */
export type StoredItem = (InputItem | OutputItem) & { id: string };

/** The items that a response adds to its conversation. */
export interface StoredTurn {
  /**
   * The items of the response's own request, with references resolved. Earlier items belong to the previous response.
   */
  input: readonly StoredItem[];
  output: readonly OutputItem[];
}

interface Stored extends StoredTurn {
  id: string;
  previousResponseId: string | null;
  /** The response that the client got. */
  response: Omit<ResponseObject, "output">;
}

/** The part of a response to store. Null if nothing is stored: `store` is false, or the answer failed. */
export function storable(wire: ResponsesRequest, response: ResponseObject): Stored | null {
  if (wire.store === false || response.status === "failed" || response.status === "in_progress") return null;
  const own = conversationOf(wire).filter(({ place }) => place !== "previous_response_id");
  const input = own.map(
    ({ item }, at): StoredItem => ({ ...item, id: itemIdOf(response.id, item.type, inputsFrom + at) }),
  );
  const { output, ...rest } = response;
  // The answer of a compaction begins a new conversation: its summary replaces all earlier items.
  const previousResponseId = isCompaction(wire) ? null : (wire.previous_response_id ?? null);
  return { id: response.id, previousResponseId, input, output, response: rest };
}

/** The conversation up to a response, which is the history for `withResolved`: oldest first, the response last. */
export function historyOf(turns: readonly StoredTurn[]): InputItem[] {
  return turns.flatMap(({ input, output }) =>
    itemsOf(output.some(({ type }) => type === "compaction") ? { input: [], output } : { input, output }),
  );
}

/** The item with this id among the stored items of its response. */
export function itemOf(turn: StoredTurn, id: string): InputItem | null {
  return itemsOf(turn).find((item) => item.id === id) ?? null;
}

/** The items by their ids. Items that clients sent may have no id. */
export function itemsById(items: readonly InputItem[]): Map<string, InputItem> {
  const found = new Map<string, InputItem>();
  for (const item of items) if ("id" in item && typeof item.id === "string") found.set(item.id, item);
  return found;
}

/**
 * The items of a turn in the form of input. Output items can be sent as input: their status and annotations are
 * ignored.
 */
function itemsOf({ input, output }: StoredTurn): (InputItem & { id: string })[] {
  return [...input, ...output] as unknown as (InputItem & { id: string })[];
}

/** A stored item as it is returned: the content of a message is always a list of parts. */
export function publicItem(item: StoredItem): StoredItem {
  if (item.type !== "message" || typeof item.content !== "string") return item;
  const part =
    item.role === "assistant"
      ? { type: "output_text" as const, text: item.content, annotations: [] }
      : { type: "input_text" as const, text: item.content };
  return { ...item, content: [part] } as StoredItem;
}
