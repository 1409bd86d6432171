/** Writes a streamed completion: a chunk for each piece that the engine sends, and one end. Pure. */
import type { InferenceEvent, StopReason } from "../../core/inference/event.ts";
import { noUsage } from "../../core/inference/usage.ts";
import type { ResponseIdentity, StreamContext, StreamEncoder } from "../../core/protocol/codec.ts";
import { encodeUsage } from "../../core/protocol/openai-chat/decode-stream.ts";
import { failure } from "../../core/protocol/openai-chat/encode-response.ts";
import type { SseMessage } from "../../core/sse/decode.ts";
import type { PassedWire } from "./passing.ts";

/** The part of every chunk before `choices`. */
export function headOf({ responseId: id, createdAtSeconds: created, model }: ResponseIdentity): string {
  return `${JSON.stringify({ id, object: "text_completion", created, model }).slice(0, -1)},"choices":`;
}

const done: SseMessage = { data: "[DONE]" };
const decoder = new TextDecoder();

export class CompletionEncoder implements StreamEncoder {
  readonly #head: string;
  readonly #requestId: string;
  readonly #wantsUsage: boolean;
  #usage = noUsage;

  constructor({ stream_options: options }: PassedWire, { identity, requestId }: StreamContext) {
    this.#head = headOf(identity);
    this.#requestId = requestId;
    this.#wantsUsage = options?.include_usage === true;
  }

  /** Writes nothing: a delta only serves to count, and its text is written with the `passed` event that follows. */
  frame(): string {
    return "";
  }

  push(event: InferenceEvent): SseMessage[] {
    if (event.type === "passed") return [this.#chunk(decoder.decode(event.bytes))];
    if (event.type === "usage") this.#usage = event.usage;
    if (event.type === "response-failed") return failure(event.fault, this.#requestId);
    return event.type === "response-end" ? this.#ended(event.reason) : [];
  }

  end(): SseMessage[] {
    return [];
  }

  heartbeat(): string {
    return ": waiting\n\n";
  }

  #ended(finish_reason: StopReason): SseMessage[] {
    const last = [this.#chunk(JSON.stringify({ index: 0, text: "", logprobs: null, finish_reason }))];
    if (this.#wantsUsage) last.push({ data: `${this.#head}[],"usage":${JSON.stringify(encodeUsage(this.#usage))}}` });
    return [...last, done];
  }

  #chunk(choice: string): SseMessage {
    return { data: `${this.#head}[${choice}]${this.#wantsUsage ? ',"usage":null' : ""}}` };
  }
}
