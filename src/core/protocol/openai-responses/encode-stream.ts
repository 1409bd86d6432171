/**
 * Writes the events that Responses clients read. Each part is an item, and items follow one another. Codex acts only on
 * `output_item.done`, in which an item that the token limit cut off must have the status `incomplete`. So the end of an
 * item waits until the next one begins or the answer ends.
 */
import type { InferenceEvent, StopReason } from "../../inference/event.ts";
import type { Fault } from "../../inference/fault.ts";
import { Fold } from "../../inference/result.ts";
import { noUsage, type Usage } from "../../inference/usage.ts";
import type { StreamContext, StreamEncoder } from "../codec.ts";
import { endOf, PartQueue } from "../part-queue.ts";
import { AnswerItems } from "./answer-items.ts";
import type { OutputCompaction, ResponsesRequest } from "./contract.ts";
import { encodeCompaction } from "./encode-response.ts";
import { encodeFailure } from "./fault.ts";
import { itemIdOf } from "./references.ts";
import { begunResponse, endedResponse, type Outcome, outcomeOf } from "./response-object.ts";
import { ResponseWriter } from "./response-writer.ts";
import { StreamItem } from "./stream-item.ts";

export function streamEncoder(
  wire: ResponsesRequest,
  { identity, requestId, endedAtSeconds }: StreamContext,
): StreamEncoder {
  const items = new AnswerItems(wire, identity.responseId, identity.model);
  const begun = begunResponse(wire, identity);
  const writer = new ResponseWriter(begun);
  const parts = new PartQueue();
  /**
   * The items that the final response object lists. If the answer fails, events that are still queued in `parts` are
   * never written.
   */
  const all: StreamItem[] = [];
  let reported: Usage | null = null;

  function take(event: InferenceEvent): void {
    switch (event.type) {
      case "response-start":
        writer.start();
        return;
      case "usage":
        reported = event.usage;
        return;
      case "part-start":
        all.at(-1)?.finish("completed");
        all.push(new StreamItem(items, writer, all.length, event.part));
        return;
      case "part-delta":
        all.at(-1)?.add(event.delta, event.logprobs);
        return;
      case "part-end":
        all.at(-1)?.end(event.signature);
        return;
      case "response-end":
        end(event.reason);
        return;
      case "response-failed":
        fail(event.fault);
    }
  }

  function end(stop: StopReason): void {
    const outcome = outcomeOf(stop);
    const last = all.length - 1;
    const output = all.map((item, index) => item.finish(index === last ? outcome.status : "completed"));
    writer.finish(endedResponse(begun, { output, usage: reported ?? noUsage, outcome, atSeconds: endedAtSeconds?.() }));
  }

  /**
   * Ends the stream with a failure, and does not end the open items: a client acts on an ended item, and will request
   * these again.
   */
  function fail(fault: Fault): void {
    const output = all.map((item) => item.snapshot(item.ended ? "completed" : "incomplete"));
    const outcome: Outcome = { status: "failed", error: encodeFailure(fault, requestId) };
    writer.finish(endedResponse(begun, { output, usage: reported, outcome, atSeconds: endedAtSeconds?.() }));
  }

  return {
    frame(event) {
      const item = all.at(-1);
      if (event.logprobs || !item?.around || !parts.takes(event)) return null;
      return item.frame(event.delta, item.around);
    },
    push(event) {
      for (const next of parts.push(event)) take(next);
      return writer.take();
    },
    ...endOf(writer, fail),
  };
}

/** Writes the answer to a compaction. Clients act only on the whole item, so its text is written once, at its end. */
export function compactionEncoder(
  wire: ResponsesRequest,
  { identity, requestId, endedAtSeconds }: StreamContext,
): StreamEncoder {
  const begun = begunResponse(wire, identity);
  const writer = new ResponseWriter(begun);
  const fold = new Fold();
  let added: OutputCompaction | null = null;

  function add(): void {
    if (added) return;
    added = { id: itemIdOf(identity.responseId, "compaction", 0), type: "compaction", encrypted_content: "" };
    writer.write({ type: "response.output_item.added", output_index: 0, item: added });
  }

  function end(): void {
    const response = encodeCompaction(fold.result(), wire, endedAtSeconds?.());
    add();
    writer.write({ type: "response.output_item.done", output_index: 0, item: response.output[0]! });
    writer.finish(response);
  }

  function fail(fault: Fault): void {
    const outcome: Outcome = { status: "failed", error: encodeFailure(fault, requestId) };
    const output = added ? [added] : [];
    writer.finish(endedResponse(begun, { output, usage: null, outcome, atSeconds: endedAtSeconds?.() }));
  }

  return {
    frame: () => null,
    push(event) {
      fold.push(event);
      if (event.type === "response-start") writer.start();
      else if (event.type === "part-start" && event.part.kind === "text") add();
      else if (event.type === "response-failed") fail(event.fault);
      else if (event.type === "response-end") end();
      return writer.take();
    },
    ...endOf(writer, fail),
  };
}
