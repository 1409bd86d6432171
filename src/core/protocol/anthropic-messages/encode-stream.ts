/** Writes the events that Messages clients read. Each part is a block, and a block ends before the next one begins. */
import type { InferenceEvent } from "../../inference/event.ts";
import type { Fault } from "../../inference/fault.ts";
import { noUsage, type Usage } from "../../inference/usage.ts";
import type { SseMessage } from "../../sse/decode.ts";
import type { StreamContext, StreamEncoder } from "../codec.ts";
import { endOf, PartQueue } from "../part-queue.ts";
import { type Block, beginBlock } from "./blocks.ts";
import type { MessagesRequest } from "./contract.ts";
import { encodeFault } from "./fault.ts";
import { MessageWriter } from "./message-writer.ts";
import { encodeStop, type Held } from "./stop-reason.ts";
import { encodeUsage } from "./usage.ts";

export function streamEncoder(wire: MessagesRequest, context: StreamContext): StreamEncoder {
  let usage: Usage = { ...noUsage, inputTokens: context.inputTokensEstimate };
  const held: Held = { calls: false, refused: false };
  const writer = new MessageWriter(context.identity, () => encodeUsage(usage));
  const parts = new PartQueue();
  let block: Block | null = null;
  const fail = (fault: Fault) => writer.fail(encodeFault(fault, context.requestId));

  function take(event: InferenceEvent): void {
    switch (event.type) {
      case "response-start":
        // The message begins only with its first block, because by then the engine may have counted the input.
        return;
      case "usage":
        usage = event.usage;
        return;
      case "part-start":
        if (event.part.kind === "tool-call") held.calls = true;
        if (event.part.kind === "refusal") held.refused = true;
        block = beginBlock(event.part, writer);
        return;
      case "part-delta":
        block?.add(event.delta);
        return;
      case "part-end":
        block?.end(event.signature, event.citations);
        return;
      case "response-end":
        writer.finish(encodeStop(event, held, wire), encodeUsage(usage));
        return;
      case "response-failed":
        fail(event.fault);
    }
  }

  return {
    frame: (event) => (block && parts.takes(event) ? block.frame(event.delta) : null),
    push(event) {
      for (const next of parts.push(event)) take(next);
      return writer.take();
    },
    ...endOf(writer, fail),
  };
}

export function failure(fault: Fault, requestId: string): SseMessage[] {
  const error = encodeFault(fault, requestId);
  return [{ event: error.type, data: JSON.stringify(error) }];
}
