/**
 * Writes the events of a Messages stream, always in this grammar:
 *
 *     message_start (ping)* (content_block_start content_block_delta* content_block_stop)* message_delta message_stop
 *
 * or `error` in place of the rest. At most one block is open, so blocks cannot overlap. Nothing is written after the end. Each
 * frame has the name of its event, because SDKs skip frames without one.
 */
import type { SseMessage } from "../../sse/decode.ts";
import type { ResponseIdentity } from "../codec.ts";
import { type AroundDelta, aroundDelta, FrameWriter } from "../part-queue.ts";
import type { ContentBlock, ContentBlockDelta, MessageStreamEvent, MessagesError, MessagesUsage } from "./contract.ts";
import type { Stop } from "./stop-reason.ts";

export class MessageWriter extends FrameWriter {
  #state: "before" | "between" | "inside" | "over" = "before";
  #index = -1;
  #around: AroundDelta | null = null;

  constructor(
    readonly identity: ResponseIdentity,
    readonly usageAtStart: () => MessagesUsage,
  ) {
    super();
  }

  get over(): boolean {
    return this.#state === "over";
  }

  heartbeat(): void {
    if (this.over) return;
    this.#start();
    this.#write({ type: "ping" });
  }

  /** Begins a block. `empty` is the block's delta with an empty text; absent if the block has no deltas. */
  open(block: ContentBlock, empty?: ContentBlockDelta): void {
    if (this.over) return;
    this.#start();
    this.close();
    this.#index += 1;
    this.#state = "inside";
    this.#write({ type: "content_block_start", index: this.#index, content_block: block });
    this.#around = empty
      ? aroundDelta(messageOf({ type: "content_block_delta", index: this.#index, delta: empty }))
      : null;
  }

  delta(delta: ContentBlockDelta): void {
    if (this.#state !== "inside") return;
    this.#write({ type: "content_block_delta", index: this.#index, delta });
  }

  /** The frame of a delta of the open block, or "" if the delta is empty. Null if no block is open. */
  frame(delta: string): string | null {
    if (this.#state !== "inside" || !this.#around) return null;
    return delta === "" ? "" : this.#around.before + JSON.stringify(delta) + this.#around.after;
  }

  close(): void {
    if (this.#state !== "inside") return;
    this.#write({ type: "content_block_stop", index: this.#index });
    this.#state = "between";
  }

  finish(stop: Stop, usage: MessagesUsage): void {
    if (this.over) return;
    this.#start();
    this.close();
    this.#write({ type: "message_delta", delta: stop, usage });
    this.#write({ type: "message_stop" });
    this.#state = "over";
  }

  fail(error: MessagesError): void {
    if (this.over) return;
    this.#write(error);
    this.#state = "over";
  }

  #start(): void {
    if (this.#state !== "before") return;
    this.#state = "between";
    const { responseId: id, model } = this.identity;
    const head = { id, type: "message" as const, role: "assistant" as const, model };
    const usage = this.usageAtStart();
    const message = { ...head, content: [], stop_reason: null, stop_sequence: null, usage };
    this.#write({ type: "message_start", message });
  }

  #write(event: MessageStreamEvent): void {
    this.put(messageOf(event));
  }
}

function messageOf(event: MessageStreamEvent): SseMessage {
  return { event: event.type, data: JSON.stringify(event) };
}
