/**
 * Reads a stream that was already written and whose encoder no longer exists, so that the stream can be ended with the
 * right sequence numbers and all its items. Also reports what a background response has delivered.
 */
import type { Fault } from "../../core/inference/fault.ts";
import type { JsonObject } from "../../core/protocol/json.ts";
import type { OutputItem, ResponseObject } from "../../core/protocol/openai-responses/contract.ts";
import { encodeFailure } from "../../core/protocol/openai-responses/fault.ts";
import { ResponseWriter } from "../../core/protocol/openai-responses/response-writer.ts";
import { encodeSse } from "../../core/sse/decode.ts";
import type { StreamEnding } from "./needs.ts";

/** The fields of an event that this file reads. */
interface WrittenEvent extends JsonObject {
  type: string;
  sequence_number: number;
  response: ResponseObject;
  output_index: number;
  content_index?: number;
  summary_index?: number;
  item: JsonObject;
  part: JsonObject;
  delta: string;
}

export class WrittenStream implements StreamEnding {
  #response: ResponseObject;
  #events = 0;
  readonly #items: JsonObject[] = [];

  /** `begun`: the response object with which the stream begins if nothing of it was written. */
  constructor(begun: ResponseObject) {
    this.#response = begun;
  }

  /** The items, as far as they were written. */
  get output(): OutputItem[] {
    return this.#items as unknown as OutputItem[];
  }

  saw(frames: string): void {
    for (const event of eventsIn(frames)) {
      this.#events = event.sequence_number + 1;
      if (event.type === "response.created") this.#response = event.response;
      else take(event, this.#items);
    }
  }

  end(fault: Fault, requestId: string): string {
    const error = encodeFailure(fault, requestId);
    return this.endAs({ ...this.#response, status: "failed", error, output: this.output });
  }

  /** Ends the stream with a response that has ended, although events in between are missing. "" if it has not. */
  endAs(response: ResponseObject): string {
    const writer = new ResponseWriter(this.#response, this.#events);
    writer.finish(response);
    return writer.take().map(encodeSse).join("");
  }
}

/**
 * The events in frames that this service wrote: each has one line of JSON. A text in it may have U+2028 and U+2029,
 * which end no line of a stream, but which `.` doesn't match.
 */
function eventsIn(frames: string): WrittenEvent[] {
  return [...frames.matchAll(/^data: (\{[^\n]*\})$/gm)].map(([, data]) => JSON.parse(data!));
}

function take(event: WrittenEvent, items: JsonObject[]): void {
  const { type, output_index: index, item, part, delta } = event;
  const open = items[index];
  if (type === "response.output_item.added")
    items[index] = { ...item, ...("status" in item ? { status: "incomplete" } : {}) };
  else if (type === "response.output_item.done") items[index] = item;
  else if (open && /_part\.added$/.test(type)) partsOf(open, event).push({ ...part });
  else if (open && /^response\.(function_call_arguments|custom_tool_call_input)\.delta$/.test(type)) {
    const field = type.includes("arguments") ? "arguments" : "input";
    open[field] = `${open[field] ?? ""}${delta}`;
  } else if (open && /\.delta$/.test(type)) extend(partsOf(open, event).at(-1), delta);
}

/** The list of an item's parts that contains the part of this event. */
function partsOf(item: JsonObject, { summary_index }: WrittenEvent): JsonObject[] {
  const name = summary_index === undefined ? "content" : "summary";
  item[name] = Array.isArray(item[name]) ? item[name] : [];
  return item[name] as JsonObject[];
}

function extend(part: JsonObject | undefined, delta: string): void {
  if (!part) return;
  const name = part.type === "refusal" ? "refusal" : "text";
  part[name] = `${part[name] ?? ""}${delta}`;
}

/** The frames of those events of a stream that come after the event with this number. */
export function framesAfter(frames: string, number: number): string {
  return frames
    .split(/(?<=\n\n)/)
    .filter((frame) => Number(/"sequence_number":(\d+)\}\n\n$/.exec(frame)?.[1] ?? Infinity) > number)
    .join("");
}
