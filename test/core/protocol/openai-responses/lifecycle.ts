/** Checks the lifecycle of a Responses stream as a client may rely on it: returns what is wrong, or null. */
import type { SseMessage } from "../../../../src/core/sse/decode.ts";

interface Seen {
  id: string;
  type: string;
  text: string;
  part: "none" | "open" | "done";
  said: boolean;
  done: Told["item"] | null;
}

/**
 * The keys of an event that these checks read. Which of them an event has is checked against the contract elsewhere.
 */
interface Told {
  type: string;
  event?: string;
  sequence_number: number;
  output_index: number;
  item_id: string;
  /** A compaction has no status. */
  item: { id: string; type: string; status?: string };
  delta: string;
  text?: string;
  refusal?: string;
  arguments?: string;
  input?: string;
  name?: string;
  response: { status: string; output: { id: string; type: string; status?: string }[] };
}

const terminal = new Set(["response.completed", "response.incomplete", "response.failed"]);

export function lifecycleProblem(frames: readonly SseMessage[]): string | null {
  if (frames.at(-1)?.data !== "[DONE]") return "[DONE] is not last";
  const events = frames.slice(0, -1).map(({ event, data }): Told => ({ event, ...JSON.parse(data) }));
  const items: Seen[] = [];
  for (const [at, event] of events.entries()) {
    if (event.sequence_number !== at) return `number ${event.sequence_number} where ${at} was next`;
    if (event.event !== event.type) return `the name ${event.event} of ${event.type}`;
    const expected = ["response.created", "response.in_progress"][at];
    if (expected && event.type !== expected) return `${event.type} where ${expected} was due`;
    if (terminal.has(event.type) !== (at === events.length - 1)) return `${event.type} at ${at} of ${events.length}`;
    const problem = at < 2 || terminal.has(event.type) ? null : step(items, event);
    if (problem) return `${problem} (${event.type} at ${at})`;
  }
  return ended(items, events.at(-1)?.response ?? { status: "", output: [] });
}

function step(items: Seen[], event: Told): string | null {
  if (event.type === "response.in_progress") return null;
  if (event.type === "response.output_item.added") {
    if (event.output_index !== items.length) return `item ${event.output_index} where ${items.length} was next`;
    const { id, type, status } = event.item;
    if (status !== "in_progress" && type !== "compaction") return `it begins ${status}`;
    if (items.some((item) => item.id === id)) return "its id is another's";
    if (items.at(-1)?.done === null) return "it begins inside another";
    items.push({ id, type, text: "", part: "none", said: false, done: null });
    return null;
  }
  const item = items[event.output_index];
  if (!item) return "an item that was not added";
  if (item.done) return "an item that is done";
  if (event.type === "response.output_item.done") {
    if (event.item.id !== item.id || event.item.type !== item.type) return "it is another item";
    if (item.part === "open") return "its part is open";
    if (/call/.test(item.type) && !item.said) return "its arguments were not told whole";
    item.done = event.item;
    return null;
  }
  if (event.item_id !== item.id) return `the id ${event.item_id} of item ${item.id}`;
  if (event.type.endsWith("_part.added")) {
    if (item.part !== "none") return "a second part";
    item.part = "open";
  } else if (event.type.endsWith("_part.done")) {
    if (item.part !== "open" || !item.said) return "a part that is not open, or was not told whole";
    item.part = "done";
  } else if (event.type.endsWith(".delta")) {
    if (item.said) return "a delta after the whole";
    if (!/call/.test(item.type) && item.part !== "open") return "a delta outside a part";
    item.text += event.delta;
  } else if (event.type.endsWith(".done")) {
    const whole = event.text ?? event.refusal ?? event.arguments ?? event.input;
    if (whole !== item.text) return "the whole is not what its pieces add up to";
    if (event.type.includes("function_call") && typeof event.name !== "string") return "no name";
    item.said = true;
  } else return "an event that nobody knows";
  return null;
}

function ended(items: Seen[], response: Told["response"]): string | null {
  if (response.output.length !== items.length) return "the final object has another number of items";
  for (const [at, item] of items.entries()) {
    const final = response.output[at]!;
    if (final.id !== item.id) return `item ${at} has another id at the end`;
    if (item.done && JSON.stringify(item.done) !== JSON.stringify(final)) return `item ${at} is another at the end`;
    if (!item.done && response.status !== "failed") return `item ${at} was never done`;
    if (final.status === "incomplete" && at < items.length - 1 && response.status === "incomplete")
      return `item ${at} is incomplete and not last`;
  }
  const last = response.output.at(-1);
  if (response.status === "incomplete" && last && last.type !== "compaction" && last.status !== "incomplete")
    return "the last item of a cut answer is complete";
  return null;
}
