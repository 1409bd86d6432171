/** Writes the answer to a compaction as events. Clients act only on the whole item, so its text is written once, at its end. */
import type { Fault } from "../../inference/fault.ts";
import { Fold } from "../../inference/result.ts";
import type { StreamContext, StreamEncoder } from "../codec.ts";
import { endOf } from "../part-queue.ts";
import type { OutputCompaction, ResponsesRequest } from "./contract.ts";
import { encodeCompaction } from "./encode-compaction.ts";
import { encodeFailure } from "./fault.ts";
import { itemIdOf } from "./references.ts";
import { begunResponse, endedResponse, type Outcome } from "./response-object.ts";
import { ResponseWriter } from "./response-writer.ts";

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
