/**
 * The codecs read recorded responses of real engines (test/engines/recorded, made by `npm run test:clients -- engines`)
 * correctly: the end, the text, the reasoning, the calls and the kind of an error are what the engine meant, streamed
 * and unstreamed, however the bytes are split.
 */
import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Fault } from "../../src/core/inference/fault.ts";
import type { Result } from "../../src/core/inference/result.ts";
import { type DialectName, dialects } from "../../src/core/protocol/dialects.ts";
import { upstreamCodecs } from "../../src/core/upstream/codecs.ts";
import { type Question, questionsOf, type Want } from "../clients/engines/questions.ts";
import { type RecordedAnswer, type Recording, recordings } from "../clients/engines/record.ts";
import { bytes, folded, readBy } from "../core/protocol/reading.ts";

const identity = { responseId: "resp_recorded", createdAtSeconds: 1_790_000_000, model: "acme/tiny" };

/**
 * Recorded requests with which an engine does not comply (docs/engines.md), each with the meaning of the engine's
 * actual response.
 */
const otherwise: Record<string, Want> = {
  // llama.cpp reports which stop sequence ended the response, but with the finish reason of a normal end.
  "llama.cpp anthropic-messages stop sequence": { end: "stop", text: "one two" },
  // transformers does not remove the stop sequence from the text.
  "transformers openai-chat stop sequence": { end: "stop", text: "one two three" },
  // LiteLLM's proxy implements Messages by its own adapter to Responses, which drops reasoning and stop sequences, and
  // refuses tool results.
  "litellm-proxy anthropic-messages hello": { thought: "" },
  "litellm-proxy anthropic-messages calls": { thought: "" },
  "litellm-proxy anthropic-messages cap": { end: "stop", thought: "" },
  "litellm-proxy anthropic-messages results": {
    end: undefined,
    text: undefined,
    thought: undefined,
    fault: "invalid_value",
  },
  "litellm-proxy anthropic-messages stop sequence": { end: "stop", text: undefined, thought: "" },
};

for (const file of readdirSync(recordings).filter((name) => name.endsWith(".json"))) {
  const recording = JSON.parse(readFileSync(join(recordings, file), "utf8")) as Recording;
  describe(`${recording.engine} ${recording.version}`, () => {
    for (const answer of recording.answers) {
      const question = questionsOf(answer.protocol).find(({ name }) => name === answer.question);
      test(`${answer.protocol}: ${answer.question}`, async () => {
        if (!question) throw new Error("a recorded answer to a question that is not asked any more");
        const want = { ...question.want, ...otherwise[keyOf(recording, answer)] };
        if (answer.status !== 200) return expectRefusal(recording, answer, want);
        if (!answer.contentType.includes("event-stream"))
          return expectAnswer(wholeOf(recording, answer, question), want);
        for (const size of [1, 7, 4096, answer.body.length])
          expectAnswer(await streamedOf(recording, answer, question, size), want);
        if (answer.protocol !== "openai-responses" || !answer.body.includes('"status":"incomplete"')) return;
        const { max_output_tokens: _, ...body } = question.body;
        const uncapped = await streamedOf(recording, answer, { ...question, body }, 4096);
        expect(uncapped.reason).toBe("length");
      });
    }
  });
}

function keyOf({ engine }: Recording, { protocol, question }: RecordedAnswer): string {
  return `${engine} ${protocol} ${question.replace(", streamed", "")}`;
}

/** The information that the codecs need besides the response: the engine's dialect and the request's token limit. */
function contextOf({ dialect }: Recording, { body }: Question) {
  return {
    dialect: dialects[dialect as DialectName],
    outputTokens_max: Number(body.max_tokens ?? body.max_output_tokens ?? Number.POSITIVE_INFINITY),
  };
}

function wholeOf(recording: Recording, { protocol, body }: RecordedAnswer, question: Question): Result {
  return folded(upstreamCodecs[protocol].response.decode(JSON.parse(body), identity, contextOf(recording, question)));
}

async function streamedOf(
  recording: Recording,
  { protocol, body }: RecordedAnswer,
  question: Question,
  size: number,
): Promise<Result> {
  const decoder = upstreamCodecs[protocol].stream.decoder(identity, contextOf(recording, question));
  const whole = bytes(body);
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < whole.length; at += size) pieces.push(whole.slice(at, at + size));
  return folded(await readBy(decoder, pieces));
}

function expectRefusal({ dialect }: Recording, { protocol, status, body }: RecordedAnswer, want: Want): void {
  const fault = upstreamCodecs[protocol].fault.decode(status, JSON.parse(body), dialects[dialect as DialectName]);
  expect(fault).toBeInstanceOf(Fault);
  expect(fault.code).toBe(want.fault!);
}

function expectAnswer(result: Result, want: Want): void {
  const textOf = (kind: string) =>
    result.parts
      .filter(({ head }) => head.kind === kind)
      .map(({ text }) => text)
      .join("")
      .trim();
  if (want.end !== undefined) expect(result.reason).toBe(want.end);
  if (want.text !== undefined) expect(textOf("text")).toBe(want.text);
  if (want.thought !== undefined) expect(textOf("reasoning")).toBe(want.thought);
  expect(result.usage.outputTokens).toBeGreaterThan(0);
  // Engines also send log probabilities of reasoning and of special tokens, which must not be among these.
  const { logprobs } = result.parts.find(({ head }) => head.kind === "text") ?? {};
  if (logprobs)
    expect(
      logprobs
        .map(({ token }) => token)
        .join("")
        .trim(),
    ).toBe(textOf("text"));
  for (const part of result.parts) if (part.head.kind !== "text") expect(part.logprobs).toBeUndefined();
  if (want.calls === undefined) return;
  const calls = result.parts.flatMap(({ head, text }) =>
    head.kind === "tool-call" ? [[head.toolName, JSON.parse(text)]] : [],
  );
  expect<unknown>(calls).toEqual(want.calls);
}
