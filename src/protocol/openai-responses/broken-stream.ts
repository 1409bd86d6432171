/** The end of a stream whose encoder is gone, made of what it had written: the numbers go on, and no item is left out. */
import type { Fault } from "../../inference/fault.ts";
import { encodeSse } from "../../sse/encode.ts";
import type { JsonObject } from "../json.ts";
import { encodeFailure } from "./fault.ts";

/** The fields of the events that matter here. */
interface WrittenEvent extends JsonObject {
  type: string;
  sequence_number: number;
  response: JsonObject;
  output_index: number;
  content_index?: number;
  summary_index?: number;
  item: JsonObject;
  part: JsonObject;
  delta: string;
}

export function brokenStream(sent: string, fault: Fault, requestId: string): string {
  const end = encodeSse({ data: "[DONE]" });
  const events = eventsIn(sent);
  const begun = events.find(({ type }) => type === "response.created");
  if (begun === undefined) return end;
  const response = {
    ...begun.response,
    status: "failed",
    error: encodeFailure(fault, requestId),
    output: itemsOf(events),
  };
  const event = { type: "response.failed", response, sequence_number: events.at(-1)!.sequence_number + 1 };
  return encodeSse({ event: event.type, data: JSON.stringify(event) }) + end;
}

/** Events that this service wrote: each is one line of JSON. */
export function eventsIn(frames: string): WrittenEvent[] {
  return [...frames.matchAll(/^data: (\{.*\})$/gm)].map(([, data]) => JSON.parse(data!));
}

/** The items as far as they were written. */
function itemsOf(events: readonly WrittenEvent[]): JsonObject[] {
  const items: JsonObject[] = [];
  for (const event of events) {
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
  return items;
}

/** The list of an item's parts in which the part of this event stands. */
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

/** The frames of a stream whose events come after the one with this number. */
export function framesAfter(frames: string, number: number): string {
  return frames
    .split(/(?<=\n\n)/)
    .filter((frame) => Number(/"sequence_number":(\d+)\}\n\n$/.exec(frame)?.[1] ?? Infinity) > number)
    .join("");
}
