// Fuzzes the decoder of event streams: the result does not depend on how the bytes are split, and agrees with a slow
// reference that reads whole lines.

import fc from "fast-check";
import type { SseMessage } from "../../src/core/sse/decode.ts";
import { decoded } from "../core/sse/decoded.ts";
import { cutAt } from "../harness/cut.ts";
import { affordable } from "./cost.ts";
import { type Fuzzer, law, same } from "./fuzzer.ts";
import { mutated, seedsOf } from "./mutation.ts";

const ms_per_kb = 5;
const seeds = ["openai-chat", "anthropic-messages", "openai-responses"].flatMap(seedsOf);
const pieces = ["\r", "\n", "\r\n", "\n\n", "data:", "data: x", "event: e", "event", "data", ":", "\ufeff", "é😀", "x"];
const bytes = fc.oneof(
  mutated(seeds, pieces).map((text) => new TextEncoder().encode(text)),
  fc.array(fc.constantFrom(...pieces), { maxLength: 60 }).map((all) => new TextEncoder().encode(all.join(""))),
  fc.uint8Array({ maxLength: 300 }),
);
const cuts = fc.array(fc.nat(), { maxLength: 12 });
const limits = fc.oneof(fc.constant(4_096), fc.nat(60));

export const sseFuzzer: Fuzzer = {
  name: "sse",
  properties: {
    "any bytes are the messages that a reader of whole lines finds, however they are cut, or an overflow": law(
      bytes,
      cuts,
      limits,
      (stream, at, limit) => {
        const whole = affordable(stream.length, ms_per_kb, () => decoded([stream], limit));
        same(decoded(cutAt(stream, at), limit), whole);
        same(decoded(cutAt(stream, [...stream.keys()]), limit), whole);
        if (whole.end !== "overflow") same(whole.messages, read(stream));
      },
    ),
  },
};

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
