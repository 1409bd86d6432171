/**
 * The grammar of a Messages stream, as the only way to write one:
 *
 *     message_start (ping)* (content_block_start content_block_delta* content_block_stop)* message_delta message_stop
 *
 * or `error` in place of all that is still to come. There is one place for an open block, so blocks cannot overlap; what
 * has ended writes nothing more. Frames carry their event's name: SDKs pass over those that do not.
 */
import type { SseMessage } from "../../sse/message.ts";
import type { ResponseIdentity } from "../codec.ts";
import { type AroundDelta, aroundDelta } from "../delta-frame.ts";
import type { ContentBlock, ContentBlockDelta, MessageStreamEvent, MessagesError, MessagesUsage } from "./contract.ts";
import type { Stop } from "./stop-reason.ts";

export class MessageWriter {
  #state: "before" | "between" | "inside" | "over" = "before";
  #index = -1;
  #out: SseMessage[] = [];
  #around: AroundDelta | null = null;

  constructor(
    readonly identity: ResponseIdentity,
    /** What is known of the usage when the message starts. */
    readonly usageAtStart: () => MessagesUsage,
  ) {}

  get over(): boolean {
    return this.#state === "over";
  }

  /** What was written since the last time. */
  take(): SseMessage[] {
    const out = this.#out;
    this.#out = [];
    return out;
  }

  ping(): void {
    if (this.over) return;
    this.#start();
    this.#write({ type: "ping" });
  }

  /** `empty`: what a delta of it without text would be, of blocks that have deltas. */
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

  /** A delta of the open block, as text: an empty one is not written. Null where none is open. */
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
    this.#write({
      type: "message_delta",
      delta: { stop_reason: stop.stop_reason, stop_sequence: stop.stop_sequence },
      usage,
    });
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
    const usage = this.usageAtStart();
    this.#write({
      type: "message_start",
      message: {
        id,
        type: "message",
        role: "assistant",
        model,
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage,
      },
    });
  }

  #write(event: MessageStreamEvent): void {
    this.#out.push(messageOf(event));
  }
}

function messageOf(event: MessageStreamEvent): SseMessage {
  return { event: event.type, data: JSON.stringify(event) };
}
