import { SseDecoder, type SseMessage, SseOverflow } from "../../../src/core/sse/decode.ts";

/** The messages that a decoder reads from these chunks, and how it ended. */
export function decoded(chunks: Uint8Array[], frame_bytes_max = 1 << 20) {
  const decoder = new SseDecoder({ frame_bytes_max });
  const messages: SseMessage[] = [];
  try {
    for (const chunk of chunks) messages.push(...decoder.push(chunk));
    return { messages, end: decoder.end().unfinished ? "unfinished" : "whole" };
  } catch (error) {
    if (!(error instanceof SseOverflow)) throw error;
    return { messages, end: "overflow" };
  }
}
