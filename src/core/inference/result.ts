/** A whole answer, folded from the events of a stream. Answers that are not streamed are made by this fold only. */
import type { InferenceEvent, PartHead, StopReason, TokenLogprob } from "./event.ts";
import { asFault } from "./fault.ts";
import type { Native } from "./request.ts";
import { noUsage, type Usage } from "./usage.ts";

export interface ResultPart {
  head: PartHead;
  /** The text of the part, or the arguments of a tool call. */
  text: string;
  signature?: string;
  citations?: Native[];
  logprobs?: TokenLogprob[];
}

export interface Result {
  responseId: string;
  model: string;
  createdAtSeconds: number;
  parts: ResultPart[];
  usage: Usage;
  reason: StopReason;
  stopSequence?: string;
  /** The number of turns of the conversation that were left out of the request to the engine. */
  leftOutTurns?: number;
}

/** Folds batches of events into the answer; throws the Fault of a stream that failed. */
export async function collect(batches: AsyncIterable<readonly InferenceEvent[]>): Promise<Result> {
  const fold = new Fold();
  for await (const batch of batches) for (const event of batch) fold.push(event);
  return fold.result();
}

export class Fold {
  #start: Extract<InferenceEvent, { type: "response-start" }> | undefined;
  #end: Extract<InferenceEvent, { type: "response-end" }> | undefined;
  #failure: unknown;
  #usage: Usage = noUsage;
  readonly #parts: { part: ResultPart; pieces: string[] }[] = [];

  push(event: InferenceEvent): void {
    switch (event.type) {
      case "response-start":
        this.#start = event;
        // A second `response-start` makes the events before it void.
        this.#parts.length = 0;
        this.#usage = noUsage;
        return;
      case "part-start":
        this.#parts[event.index] = { part: { head: event.part, text: "" }, pieces: [] };
        return;
      case "part-delta": {
        const found = this.#parts[event.index];
        if (!found) return;
        found.pieces.push(event.delta);
        if (event.logprobs) {
          found.part.logprobs ??= [];
          for (const logprob of event.logprobs) found.part.logprobs.push(logprob);
        }
        return;
      }
      case "part-end": {
        const part = this.#parts[event.index]?.part;
        if (part && event.signature !== undefined) part.signature = event.signature;
        if (part && event.citations !== undefined) part.citations = event.citations;
        return;
      }
      case "usage":
        this.#usage = event.usage;
        return;
      case "response-end":
        this.#end = event;
        return;
      case "response-failed":
        this.#failure = event.fault;
    }
  }

  /** Returns the whole answer. Throws the Fault of a stream that failed or never ended. */
  result(): Result {
    const [start, end] = [this.#start, this.#end];
    if (this.#failure !== undefined) throw this.#failure;
    if (!start || !end) throw asFault(new Error("the stream of events ended without its terminal event"));
    return {
      responseId: start.responseId,
      model: start.model,
      createdAtSeconds: start.createdAtSeconds,
      parts: this.#parts.map(({ part, pieces }) => ({ ...part, text: pieces.join("") })),
      usage: this.#usage,
      reason: end.reason,
      ...(end.stopSequence === undefined ? {} : { stopSequence: end.stopSequence }),
      ...(start.leftOutTurns === undefined ? {} : { leftOutTurns: start.leftOutTurns }),
    };
  }
}
