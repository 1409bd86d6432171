/**
 * Writes one item of a stream: its beginning, its parts with their deltas, and its end, each once and in this order.
 */
import type { PartHead, TokenLogprob } from "../../inference/event.ts";
import { CustomInput } from "../custom-tool.ts";
import { compact } from "../json.ts";
import type { AroundDelta } from "../part-queue.ts";
import type { AnswerItems, CallerCall } from "./answer-items.ts";
import type { AnswerItem, ContentPart, ItemStatus, SummaryText } from "./contract.ts";
import { aroundNumbered, type ResponseWriter, type UnnumberedEvent } from "./response-writer.ts";

export class StreamItem {
  ended = false;
  /**
   * The frame around the deltas of the open part. Null before the first delta, which may open a part, and for items
   * whose deltas are not written as they arrive.
   */
  around: AroundDelta | null = null;
  #pieces: string[] = [];
  #logprobs: TokenLogprob[] = [];
  #signature: string | undefined;
  #final: AnswerItem | null = null;
  readonly #id: string;
  readonly #call: CallerCall | null;
  readonly #input: CustomInput | null;

  constructor(
    readonly items: AnswerItems,
    readonly writer: ResponseWriter,
    readonly index: number,
    readonly head: PartHead,
  ) {
    this.#id = items.idOf(head, index);
    this.#call = head.kind === "tool-call" ? items.callOf(head) : null;
    this.#input = this.#call?.wrapped ? new CustomInput() : null;
    writer.write({ type: "response.output_item.added", output_index: index, item: this.#added() });
    // A message always has a part. Reasoning may have none.
    if (head.kind === "text") this.#openPart({ type: "output_text", text: "", annotations: [], logprobs: [] });
    if (head.kind === "refusal") this.#openPart({ type: "refusal", refusal: "" });
  }

  add(delta: string, logprobs?: TokenLogprob[]): void {
    if (this.ended) return;
    this.#pieces.push(delta);
    for (const logprob of logprobs ?? []) this.#logprobs.push(logprob);
    this.#writeDelta(this.#input ? this.#input.push(delta) : delta, logprobs);
  }

  /** The frame that `add` would write for this delta. */
  frame(delta: string, around: AroundDelta): string {
    this.#pieces.push(delta);
    return delta === "" ? "" : this.writer.frame(delta, around);
  }

  end(signature?: string): void {
    this.ended = true;
    this.#signature = signature;
  }

  /** Writes the end of the item, if it is not written yet. */
  finish(status: ItemStatus): AnswerItem {
    if (this.#final) return this.#final;
    this.ended = true;
    if (this.#input) this.#writeDelta(this.#input.end());
    const item = this.snapshot(status);
    this.#final = item;
    this.#done(item);
    this.writer.write({ type: "response.output_item.done", output_index: this.index, item });
    return item;
  }

  snapshot(status: ItemStatus): AnswerItem {
    const part = {
      head: this.head,
      text: this.#pieces.join(""),
      ...compact({ signature: this.#signature }),
      logprobs: this.#logprobs,
    };
    return this.#final ?? this.items.itemOf(part, this.index, status);
  }

  /** The item as its first event shows it, without content. */
  #added(): AnswerItem {
    const head: PartHead = this.head.kind === "reasoning" ? { kind: "reasoning" } : this.head;
    const item = this.items.itemOf({ head, text: "" }, this.index, "in_progress");
    return item.type === "message" ? { ...item, content: [] } : item;
  }

  #openPart(part: ContentPart): void {
    this.writer.write({ type: "response.content_part.added", ...this.#place(), part });
  }

  #writeDelta(delta: string, logprobs?: TokenLogprob[]): void {
    if (delta === "" && !logprobs) return;
    if (!this.around && !this.#input) {
      if (this.head.kind === "reasoning") this.#openReasoning();
      this.around = aroundNumbered(this.#deltaOf(""));
    }
    this.writer.write(this.#deltaOf(delta, logprobs));
  }

  #deltaOf(delta: string, logprobs?: TokenLogprob[]): UnnumberedEvent {
    const inner = { item_id: this.#id, output_index: this.index };
    switch (this.head.kind) {
      case "text": {
        const requested = this.items.logprobsOf(logprobs);
        return { type: "response.output_text.delta", ...this.#place(), delta, logprobs: requested };
      }
      case "refusal":
        return { type: "response.refusal.delta", ...this.#place(), delta };
      case "reasoning":
        return this.items.writesSummary
          ? { type: "response.reasoning_summary_text.delta", ...this.#summaryPlace(), delta }
          : { type: "response.reasoning_text.delta", ...this.#place(), delta };
      case "tool-call":
        return this.#call?.custom
          ? { type: "response.custom_tool_call_input.delta", ...inner, delta }
          : { type: "response.function_call_arguments.delta", ...inner, delta };
    }
  }

  #openReasoning(): void {
    const place = this.#summaryPlace();
    const part = { type: "summary_text" as const, text: "" };
    if (this.items.writesSummary) this.writer.write({ type: "response.reasoning_summary_part.added", ...place, part });
    else this.#openPart({ type: "reasoning_text", text: "" });
  }

  #done(item: AnswerItem): void {
    const { writer } = this;
    const inner = { item_id: this.#id, output_index: this.index };
    if (item.type === "function_call") {
      const { name, arguments: written } = item;
      writer.write({ type: "response.function_call_arguments.done", ...inner, name, arguments: written });
    } else if (item.type === "custom_tool_call") {
      writer.write({ type: "response.custom_tool_call_input.done", ...inner, input: item.input });
    } else {
      for (const part of item.content) this.#partDone(part);
      if (item.type === "reasoning") for (const part of item.summary) this.#summaryDone(part);
    }
  }

  #summaryDone(part: SummaryText): void {
    const place = this.#summaryPlace();
    this.writer.write({ type: "response.reasoning_summary_text.done", ...place, text: part.text });
    this.writer.write({ type: "response.reasoning_summary_part.done", ...place, part });
  }

  #partDone(part: ContentPart): void {
    const { writer } = this;
    const place = this.#place();
    if (part.type === "output_text") {
      const { text, logprobs } = part;
      writer.write({ type: "response.output_text.done", ...place, text, logprobs });
    } else if (part.type === "refusal") {
      writer.write({ type: "response.refusal.done", ...place, refusal: part.refusal });
    } else {
      writer.write({ type: "response.reasoning_text.done", ...place, text: part.text });
    }
    writer.write({ type: "response.content_part.done", ...place, part });
  }

  #place() {
    return { item_id: this.#id, output_index: this.index, content_index: 0 };
  }

  /** The position of the reasoning summary's part: a summary always has exactly one. */
  #summaryPlace() {
    return { item_id: this.#id, output_index: this.index, summary_index: 0 };
  }
}
