// Reads a stream of the Messages API as its clients do.

import type { MessageStreamEvent } from "../../src/core/protocol/anthropic-messages/contract.ts";
import { dataIn } from "./frames.ts";

/** The events of a stream, without pings. The check of every response (contract.ts) covers their names and order. */
export async function eventsOf(response: Response): Promise<MessageStreamEvent[]> {
  const events = dataIn(await response.text()).map((data) => JSON.parse(data) as MessageStreamEvent);
  return events.filter((event) => event.type !== "ping");
}
/** Assembles the message from a stream's events, as clients do. */
export function gathered(events: MessageStreamEvent[]) {
  const blocks: Record<string, unknown>[] = [];
  let end: object = {};
  for (const event of events) {
    if (event.type === "content_block_start") blocks.push({ ...event.content_block, json: "" });
    if (event.type === "message_delta") end = { ...event.delta, usage: event.usage };
    if (event.type !== "content_block_delta") continue;
    const block = blocks.at(-1)!;
    const { delta } = event;
    if (delta.type === "text_delta") block.text = `${block.text}${delta.text}`;
    if (delta.type === "thinking_delta") block.thinking = `${block.thinking}${delta.thinking}`;
    if (delta.type === "signature_delta") block.signature = delta.signature;
    if (delta.type === "input_json_delta") block.json = `${block.json}${delta.partial_json}`;
  }
  const content = blocks.map(({ json, ...block }) =>
    block.type === "tool_use" ? { ...block, input: JSON.parse((json as string) || "{}") } : block,
  );
  return { content, ...end };
}
