/**
 * Checks whether the frames of a Responses stream follow its grammar:
 *
 * response.created response.in_progress (response.in_progress | events of an item)* end [DONE]
 *
 * The `sequence_number` counts up from 0 without a gap. One item ends before the next begins: clients that track only
 * "the current item" run the wrong call if two are open. The events of each item come in the order of `after`. Only a
 * response that failed leaves an item open, its last. Rules: docs/design/protocols.md, Responses streams.
 */
import type { TSchema } from "typebox";
import type {
  ContentPart,
  OutputItem,
  ResponseObject,
  ResponsesStreamEvent,
  SummaryText,
} from "../../src/core/protocol/openai-responses/contract.ts";
import { framesOf, namedEvent, type Problems } from "./frames.ts";

export function responsesProblems(body: string, event: TSchema, problemsOf: Problems): string[] {
  const problems: string[] = [];
  const frames = framesOf(body, problems);
  if (frames.pop() !== "data: [DONE]") problems.push("The stream does not end with [DONE].");
  const told = new ToldResponse(problems);
  let next = 0;
  for (const frame of frames) {
    const value = namedEvent<ResponsesStreamEvent>(frame, problems);
    if (value === undefined) continue;
    const strange = problemsOf(event, value);
    problems.push(...strange);
    const { sequence_number } = value;
    if (sequence_number !== next) problems.push(`The sequence number is ${sequence_number}, not ${next}.`);
    next = sequence_number + 1;
    // An event that lacks fields of its schema cannot be checked any further.
    if (strange.length === 0) told.take(value);
  }
  if (!told.isOver) problems.push("The stream has no end.");
  return problems;
}

type Step = "added" | "part" | "delta" | "whole" | "part done" | "done";

/**
 * The events that may follow an event of an item, by the item's type: the key is the event, and the value lists the
 * possible next events. A message always has a content part; reasoning without text has none.
 */
const said: Record<Step, readonly Step[]> = {
  added: ["part"],
  part: ["delta", "whole"],
  delta: ["delta", "whole"],
  whole: ["part done"],
  "part done": ["done"],
  done: [],
};
const called: Record<Step, readonly Step[]> = { ...said, added: ["delta", "whole"], whole: ["done"] };
const after: Record<OutputItem["type"], Record<Step, readonly Step[]>> = {
  message: said,
  reasoning: { ...said, added: ["part", "done"] },
  function_call: called,
  custom_tool_call: called,
  // A compaction has no deltas: the event of its end has the whole item.
  compaction: { ...said, added: ["done"] },
};

type Part = ContentPart | SummaryText;

/**
 * The owner of the text of each kind of text event, such as `output_text`: a type of content part, or a type of item
 * that has no parts.
 */
const speakers: Record<string, Part["type"] | OutputItem["type"]> = {
  output_text: "output_text",
  refusal: "refusal",
  reasoning_text: "reasoning_text",
  reasoning_summary_text: "summary_text",
  function_call_arguments: "function_call",
  custom_tool_call_input: "custom_tool_call",
};

type ItemEvent = Exclude<ResponsesStreamEvent, { response: ResponseObject }>;
type InnerEvent = Exclude<ItemEvent, { item: OutputItem }>;

interface ToldItem {
  added: OutputItem;
  last: Step;
  /** The type of the item's content part; null until it has one. */
  part: Part["type"] | null;
  /** The concatenated deltas of the item's text so far. */
  text: string;
  done: OutputItem | null;
}

class ToldResponse {
  isOver = false;
  #begun: ResponseObject | null = null;
  #eventCount = 0;
  readonly #items: ToldItem[] = [];

  constructor(readonly problems: string[]) {}

  take(event: ResponsesStreamEvent): void {
    const due = ["response.created", "response.in_progress"][this.#eventCount++];
    if (due !== undefined && event.type !== due) this.problems.push(`'${event.type}' stands where '${due}' is due.`);
    if (this.isOver) this.problems.push(`'${event.type}' comes after the end.`);
    if (!("response" in event)) this.#takeItem(event);
    else if (event.type === "response.created" || event.type === "response.in_progress") this.#begin(event);
    else this.#end(event);
  }

  #begin({ type, response }: { type: string; response: ResponseObject }): void {
    if (type === "response.created" && this.#eventCount > 1) this.problems.push("The response is created again.");
    if (response.status !== "in_progress" || response.output.length > 0 || response.usage !== null)
      this.problems.push(`'${type}' holds a response that has begun to answer.`);
    this.#begun ??= response;
    if (!isSame(response, this.#begun)) this.problems.push(`'${type}' holds another response.`);
  }

  #takeItem(event: ItemEvent): void {
    const index = event.output_index;
    if (event.type === "response.output_item.added") {
      if (index !== this.#items.length)
        this.problems.push(`The item ${index} is added as number ${this.#items.length}.`);
      if (this.#items.some(({ added }) => added.id === event.item.id)) this.problems.push("Two items have one id.");
      if (this.#items.at(-1)?.done === null)
        this.problems.push(`The item ${index} is added before the item ${this.#items.length - 1} is done.`);
      if ((statusOf(event.item) ?? "in_progress") !== "in_progress" || textOf(event.item) !== "")
        this.problems.push(`The item ${index} is added with an answer in it.`);
      this.#items.push({ added: event.item, last: "added", part: null, text: "", done: null });
      return;
    }
    const item = this.#items[index];
    if (!item) {
      this.problems.push(`'${event.type}' is of the item ${index}, which was not added.`);
      return;
    }
    const step = stepOf(event.type);
    if (!after[item.added.type][item.last].includes(step))
      this.problems.push(`'${event.type}' follows '${item.last}' in the item ${index}.`);
    item.last = step;
    if (event.type === "response.output_item.done") this.#finish(item, event.item);
    else this.#takeInner(item, event);
  }

  #takeInner(item: ToldItem, event: InnerEvent): void {
    if (event.item_id !== item.added.id) this.problems.push(`'${event.type}' has another id than its item.`);
    const place = "content_index" in event ? event.content_index : "summary_index" in event ? event.summary_index : 0;
    if (place !== 0) this.problems.push("An item has a second part.");
    if ("part" in event) {
      item.part ??= event.part.type;
      if (event.part.type !== item.part || partText(event.part) !== item.text)
        this.problems.push(`'${event.type}' holds another part than was told.`);
      return;
    }
    const speaker = speakers[event.type.split(".")[1]!];
    if (speaker !== (item.part ?? item.added.type))
      this.problems.push(`'${event.type}' stands in a '${item.part ?? item.added.type}'.`);
    if ("delta" in event) item.text += event.delta;
    else if (wholeOf(event) !== item.text) this.problems.push(`'${event.type}' is not what its deltas add up to.`);
  }

  #finish(item: ToldItem, done: OutputItem): void {
    const { id, type } = item.added;
    if (done.id !== id || done.type !== type) this.problems.push(`The item '${id}' is done as '${done.id}'.`);
    if (statusOf(done) === "in_progress") this.problems.push(`The item '${id}' is done, and in progress.`);
    if (done.type !== "compaction" && textOf(done) !== item.text)
      this.problems.push(`The item '${id}' is not what its deltas add up to.`);
    if (partsOf(done).some((part) => part.type !== item.part))
      this.problems.push(`The item '${id}' is done with another part than was told.`);
    item.done = done;
  }

  #end({ type, response }: { type: string; response: ResponseObject }): void {
    this.isOver = true;
    const { status, output, id } = response;
    if (type !== `response.${status}`) this.problems.push(`'${type}' holds a response that is '${status}'.`);
    if (this.#begun && this.#begun.id !== id) this.problems.push("The response's id changes within the stream.");
    if (output.length !== this.#items.length)
      this.problems.push(`The response has ${output.length} items, and told of ${this.#items.length}.`);
    for (const [at, { added, done }] of this.#items.entries()) {
      const final = output[at];
      if (!done && status !== "failed") this.problems.push(`The item ${at} is not done.`);
      if (final?.id !== added.id) this.problems.push(`The item ${at} has another id in the response.`);
      if (done && !isSame(done, final)) this.problems.push(`The item ${at} is another in the response.`);
    }
    if (status === "failed") return;
    const isCut = output.map((item) => statusOf(item) === "incomplete");
    if (isCut.slice(0, -1).includes(true)) this.problems.push("An item that is not the last is incomplete.");
    const last = output.at(-1);
    if (last && statusOf(last) !== undefined && isCut.at(-1) !== (status === "incomplete"))
      this.problems.push(`The last item of a response that is '${status}' is '${statusOf(last)}'.`);
  }
}

function stepOf(type: Exclude<ItemEvent["type"], "response.output_item.added">): Step {
  if (type === "response.output_item.done") return "done";
  if (type.endsWith("_part.added")) return "part";
  if (type.endsWith("_part.done")) return "part done";
  return type.endsWith(".delta") ? "delta" : "whole";
}

/** The status of an item. The type compaction has no status. */
function statusOf(item: OutputItem) {
  return "status" in item ? item.status : undefined;
}

function textOf(item: OutputItem): string {
  if (item.type === "compaction") return item.encrypted_content;
  if (item.type === "function_call") return item.arguments;
  if (item.type === "custom_tool_call") return item.input;
  return partsOf(item).map(partText).join("");
}

function partsOf(item: OutputItem): Part[] {
  if (item.type === "reasoning") return [...item.summary, ...item.content];
  return item.type === "message" ? item.content : [];
}

function partText(part: Part): string {
  return part.type === "refusal" ? part.refusal : part.text;
}

function wholeOf(event: Exclude<InnerEvent, { delta: string } | { part: Part }>): string {
  if ("text" in event) return event.text;
  if ("refusal" in event) return event.refusal;
  return "arguments" in event ? event.arguments : event.input;
}

function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
