// Fuzzes engines' responses in each protocol: for any response, the client's response follows its grammar, whatever the
// client's protocol is, and nothing is thrown.

import fc from "fast-check";
import { Fault } from "../../src/core/inference/fault.ts";
import { Fold } from "../../src/core/inference/result.ts";
import type { UpstreamCodec } from "../../src/core/protocol/codec.ts";
import { SseDecoder } from "../../src/core/sse/decode.ts";
import { type UpstreamProtocol, upstreamCodecs, upstreamProtocols } from "../../src/core/upstream/codecs.ts";
import { grammarProblem } from "../core/protocol/grammar.ts";
import { type Ask, callers, clientNames } from "../core/protocol/pairs/wires.ts";
import { streamProblem } from "../core/protocol/reading.ts";
import { affordable } from "./cost.ts";
import { type Fuzzer, law } from "./fuzzer.ts";
import { mutated, seedsOf } from "./mutation.ts";

const ms_per_kb = 10;
const plain: Ask = { instructions: "i", question: "q" };
const asks: readonly Ask[] = [plain, { ...plain, everything: true }];
const pieces = [
  "null",
  "[]",
  "{}",
  '""',
  "-1",
  "1e999",
  "0.5",
  "9007199254740993",
  "true",
  '"\\ud800"',
  '{"__proto__":null}',
  '"__proto__":',
  "[[[[",
  "\n\n",
  "data: [DONE]\n\n",
  "data: {}\n\n",
  '"index":4294967296',
  '"type":"constructor"',
  ",",
];

const changes = fc.array(
  fc.tuple(
    fc.nat(),
    fc.oneof(
      fc.constantFrom(undefined, null, [], {}, "", -1, 0, 1, 1e308, 0.5, true, "a", "constructor", "__proto__"),
      fc.jsonValue(),
    ),
  ),
  { maxLength: 4 },
);

export const upstreamFuzzers: readonly Fuzzer[] = upstreamProtocols.map(fuzzerOf);

function fuzzerOf(protocol: UpstreamProtocol): Fuzzer {
  const codec: UpstreamCodec = upstreamCodecs[protocol];
  const seeds = seedsOf(protocol);
  const events = seeds.flatMap(dataOf);
  const texts = mutated(seeds, pieces);
  return {
    name: `upstream-${protocol}`,
    properties: {
      "a stream decodes to a grammatical one": law(texts, (text) => streamed(codec, text)),
      "and so do its messages in any order, left out and repeated": law(fc.array(fc.constantFrom(...events)), (all) =>
        streamed(codec, all.map((data) => `data: ${data}\n\n`).join("")),
      ),
      "and so do they with any values in place of their own": law(
        fc.array(fc.tuple(fc.constantFrom(...events), changes), { maxLength: 12 }),
        (all) => {
          const sent = all.map(([data, edits]) => JSON.stringify(changed(JSON.parse(asJson(data)), edits)));
          streamed(codec, sent.map((data) => `data: ${data}\n\n`).join(""));
        },
      ),
      "an answer that comes whole decodes to a grammatical stream": law(
        fc.constantFrom(...events),
        changes,
        fc.jsonValue(),
        (data, edits, any) => {
          for (const reply of [changed(JSON.parse(asJson(data)), edits), any]) whole(codec, reply);
        },
      ),
      "a refusal decodes to a fault": law(
        fc.integer({ min: 100, max: 999 }),
        fc.jsonValue(),
        texts,
        (status, any, text) => {
          for (const body of [any, { error: any }, { error: { message: any, code: any, type: any } }, text]) {
            if (!(codec.fault.decode(status, body) instanceof Fault)) throw new Error("it is no fault");
          }
        },
      ),
    },
  };
}

function streamed(codec: UpstreamCodec, text: string): void {
  for (const client of clientNames) {
    const { identity, written } = callers[client];
    const events = affordable(text.length, ms_per_kb, () => {
      const decoder = codec.stream.decoder(identity);
      const messages = new SseDecoder().push(new TextEncoder().encode(text));
      return [...messages.flatMap((message) => decoder.push(message)), ...decoder.end()];
    });
    check(events);
    for (const ask of asks) {
      const problem = streamProblem(client, written(ask, events));
      if (problem) throw new Error(`what a client of ${client} gets: ${problem}`);
    }
  }
}

function whole(codec: UpstreamCodec, reply: unknown): void {
  check(affordable(JSON.stringify(reply).length, ms_per_kb, () => codec.response.decode(reply, callers.chat.identity)));
}

function check(events: ReturnType<UpstreamCodec["response"]["decode"]>): void {
  const problem = grammarProblem(events);
  if (problem) throw new Error(problem);
  const ids = events.flatMap((event) =>
    event.type === "part-start" && event.part.kind === "tool-call" ? [event.part.callId] : [],
  );
  if (new Set(ids).size < ids.length) throw new Error("two calls have one ID");
  const fold = new Fold();
  for (const event of events) fold.push(event);
  for (const event of events) {
    if (event.type === "response-end" && typeof event.reason !== "string") throw new Error("its reason is none");
    if (!("usage" in event) || !event.usage) continue;
    const { inputTokens, outputTokens } = event.usage;
    for (const tokens of [inputTokens, outputTokens]) {
      if (!Number.isSafeInteger(tokens) || tokens < 0) throw new Error(`${tokens} tokens`);
    }
  }
}

function dataOf(stream: string): string[] {
  return [...stream.matchAll(/^data: (.*)$/gm)].map((found) => found[1]!);
}

function asJson(data: string): string {
  return data === "[DONE]" ? "{}" : data;
}

/**
 * Replaces some nested values of a value. Each edit has the number of a nested value, in the order of a traversal, and
 * its replacement; a member whose replacement is undefined is left out.
 */
function changed(value: unknown, edits: readonly [number, unknown][]): unknown {
  return edits.reduce((before, [at, put]) => {
    let left = at % (count(before) + 1);
    return JSON.parse(JSON.stringify(before), (_name, inner) => (left-- === 0 ? put : inner)) ?? null;
  }, value);
}

function count(value: unknown): number {
  if (typeof value !== "object" || value === null) return 1;
  return 1 + Object.values(value).reduce((sum: number, inner) => sum + count(inner), 0);
}
