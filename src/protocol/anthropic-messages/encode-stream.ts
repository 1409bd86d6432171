/**
 * The centre → the events that Messages clients read. Parts may be open side by side in the centre (engines interleave
 * tool fragments), and blocks may not: the part that began first is written as it comes, the others are held and follow.
 */
import type { InferenceEvent } from "../../inference/event.ts";
import { asFault } from "../../inference/fault.ts";
import { noUsage, type Usage } from "../../inference/usage.ts";
import { encodeSse } from "../../sse/encode.ts";
import type { StreamContext, StreamEncoder } from "../codec.ts";
import { type Block, blockOf } from "./blocks.ts";
import type { MessagesRequest } from "./contract.ts";
import { encodeFault } from "./fault.ts";
import { MessageWriter } from "./message-writer.ts";
import { encodeStop, type Held } from "./stop-reason.ts";
import { encodeUsage } from "./usage.ts";

export function streamEncoder(wire: MessagesRequest, context: StreamContext): StreamEncoder {
  let usage: Usage = { ...noUsage, inputTokens: context.inputTokensEstimate };
  const held: Held = { calls: false, refused: false };
  const writer = new MessageWriter(context.identity, () => encodeUsage(usage));
  const blocks = new Map<number, Block>();
  /** In order of their beginning; the first is the one that is written. */
  const queue: Block[] = [];

  /** Writes what the first block has to say, and goes on to the next when that has ended. */
  function advance(): void {
    for (let block = queue[0]; block; block = queue[0]) {
      block.write(writer);
      if (!block.done) return;
      queue.shift();
    }
  }

  function take(event: InferenceEvent): void {
    switch (event.type) {
      case "response-start":
        // The message starts with its first block: by then an engine may have counted the input.
        return;
      case "usage":
        usage = event.usage;
        return;
      case "part-start": {
        if (event.part.kind === "tool-call") held.calls = true;
        if (event.part.kind === "refusal") held.refused = true;
        const block = blockOf(event.part);
        blocks.set(event.index, block);
        queue.push(block);
        break;
      }
      case "part-delta":
        blocks.get(event.index)?.add(event.delta);
        break;
      case "part-end":
        blocks.get(event.index)?.end(event.signature, event.citations);
        break;
      case "response-end":
        for (const block of queue) block.end();
        advance();
        writer.finish(encodeStop(event, held, wire), encodeUsage(usage));
        return;
      case "response-failed":
        writer.fail(encodeFault(event.fault, context.requestId));
        return;
    }
    advance();
  }

  return {
    push(event) {
      take(event);
      return writer.take();
    },
    end() {
      writer.fail(encodeFault(asFault(new Error("the events ended without their end")), context.requestId));
      return writer.take();
    },
    heartbeat() {
      writer.ping();
      return writer.take().map(encodeSse).join("");
    },
  };
}
