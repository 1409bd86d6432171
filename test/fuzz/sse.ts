// Fuzzes the decoder of event streams: the result does not depend on how the bytes are split, and agrees with a slow
// reference that reads whole lines.

import fc from "fast-check";
import { SseDecoder, type SseMessage, SseOverflow } from "../../src/core/sse/decode.ts";
import { affordable } from "./cost.ts";
import { type Fuzzer, law, same } from "./fuzzer.ts";
import { mutated, seedsOf } from "./mutation.ts";

const frame_bytes_max = 4_096;
const ms_per_kb = 5;
const seeds = ["openai-chat", "anthropic-messages", "openai-responses"].flatMap(seedsOf);
const pieces = ["\r", "\n", "\r\n", "\n\n", "data:", "data: x", "event: e", "event", "data", ":", "\ufeff", "é😀", "x"];
const bytes = fc.oneof(
  mutated(seeds, pieces).map((text) => new TextEncoder().encode(text)),
  fc.array(fc.constantFrom(...pieces), { maxLength: 60 }).map((all) => new TextEncoder().encode(all.join(""))),
  fc.uint8Array({ maxLength: 300 }),
);
const cuts = fc.array(fc.nat(), { maxLength: 12 });

export const sseFuzzer: Fuzzer = {
  name: "sse",
  properties: {
    "any bytes are the messages that a reader of whole lines finds, however they are cut, or an overflow": law(
      bytes,
      cuts,
      (stream, at) => {
        const whole = affordable(stream.length, ms_per_kb, () => decoded([stream]));
        same(decoded(cut(stream, at)), whole);
        if (!whole.overflows) same(whole.messages, read(stream));
      },
    ),
  },
};

/** Decodes the chunks. SseOverflow is the only error that the decoder may throw. */
function decoded(chunks: Uint8Array[]): { messages: SseMessage[]; overflows: boolean } {
  const decoder = new SseDecoder({ frame_bytes_max });
  const messages: SseMessage[] = [];
  try {
    for (const chunk of chunks) messages.push(...decoder.push(chunk));
    decoder.end();
    return { messages, overflows: false };
  } catch (error) {
    if (!(error instanceof SseOverflow)) throw error;
    return { messages, overflows: true };
  }
}

function read(stream: Uint8Array): SseMessage[] {
  const lines = new TextDecoder().decode(stream).split(/\r\n|\r|\n/);
  const messages: SseMessage[] = [];
  let data: string[] = [];
  let event = "";
  // The text after the last line break is not a complete line.
  for (const line of lines.slice(0, -1)) {
    const [, field, value = ""] = /^([^:]*)(?:: ?(.*))?$/su.exec(line)!;
    if (field === "data") data.push(value);
    else if (field === "event") event = value;
    else if (line === "") {
      if (data.length > 0) messages.push(event === "" ? { data: data.join("\n") } : { event, data: data.join("\n") });
      [data, event] = [[], ""];
    }
  }
  return messages;
}

function cut(stream: Uint8Array, at: number[]): Uint8Array[] {
  const places = [0, ...at.map((place) => place % (stream.length + 1)).sort((a, b) => a - b), stream.length];
  return places.slice(1).map((place, index) => stream.slice(places[index], place));
}
