/** A whole answer: what the events of a stream add up to. Not streaming is this fold, never a second implementation. */
import type { InferenceEvent, PartHead, StopReason, TokenLogprob } from "./event.ts";
import { asFault } from "./fault.ts";
import type { Native } from "./request.ts";
import { noUsage, type Usage } from "./usage.ts";

export interface ResultPart {
  head: PartHead;
  /** Text, or a tool call's arguments. */
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
}

/** Folds batches of events into the answer; throws the Fault of a stream that failed. */
export async function collect(batches: AsyncIterable<readonly InferenceEvent[]>): Promise<Result> {
  const fold = folding();
  for await (const batch of batches) for (const event of batch) fold.push(event);
  return fold.result();
}

/** The same fold, one event at a time. `result` throws the Fault of a stream that failed or never ended. */
export function folding() {
  let start: Extract<InferenceEvent, { type: "response-start" }> | undefined;
  let end: Extract<InferenceEvent, { type: "response-end" }> | undefined;
  let failure: unknown;
  let usage: Usage = noUsage;
  const parts: ResultPart[] = [];
  const pieces: string[][] = [];

  return {
    push(event: InferenceEvent): void {
      switch (event.type) {
        case "response-start":
          start = event;
          return;
        case "part-start":
          parts[event.index] = { head: event.part, text: "" };
          pieces[event.index] = [];
          return;
        case "part-delta": {
          pieces[event.index]?.push(event.delta);
          const part = parts[event.index];
          if (part && event.logprobs) {
            part.logprobs ??= [];
            part.logprobs.push(...event.logprobs);
          }
          return;
        }
        case "part-end": {
          const part = parts[event.index];
          if (part && event.signature !== undefined) part.signature = event.signature;
          if (part && event.citations !== undefined) part.citations = event.citations;
          return;
        }
        case "usage":
          usage = event.usage;
          return;
        case "response-end":
          end = event;
          return;
        case "response-failed":
          failure = event.fault;
      }
    },
    result(): Result {
      if (failure !== undefined) throw failure;
      if (!start || !end) throw asFault(new Error("the stream of events ended without its terminal event"));
      return {
        responseId: start.responseId,
        model: start.model,
        createdAtSeconds: start.createdAtSeconds,
        parts: parts.map((part, index) => ({ ...part, text: (pieces[index] ?? []).join("") })),
        usage,
        reason: end.reason,
        ...(end.stopSequence === undefined ? {} : { stopSequence: end.stopSequence }),
      };
    },
  };
}
