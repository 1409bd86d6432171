// What a real engine sent, byte for byte (recorded/: the engine, its version, and what it was asked).

import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { dialects } from "../../src/protocol/dialects.ts";
import { openaiChatUpstream } from "../../src/protocol/openai-chat/codec.ts";
import { decodedBytewise, folded } from "../protocol/reading.ts";

const identity = { responseId: `chatcmpl-${"0".repeat(32)}`, createdAtSeconds: 1, model: "acme/writer-1" };
const recorded = (name: string) => readFileSync(join(import.meta.dir, "recorded", name), "utf8");

test("vLLM's log probabilities of its thoughts and markers are not the text's, streamed or whole", () => {
  const streamed = folded(decodedBytewise(openaiChatUpstream, identity, recorded("vllm-0.32.0-logprobs.sse")));
  const reply = JSON.parse(recorded("vllm-0.32.0-logprobs.whole"));
  const whole = folded(openaiChatUpstream.response.decode(reply, identity, { dialect: dialects.vllm }));
  for (const { parts } of [streamed, whole]) {
    const text = parts.find(({ head }) => head.kind === "text");
    expect(text?.text.trim()).toBe("Grüße 🌍! Hello there.");
    expect(text?.logprobs?.map(({ token }) => token).join("")).toBe(text!.text);
    expect(parts.find(({ head }) => head.kind === "reasoning")?.logprobs).toBeUndefined();
  }
  const tokens = ({ parts }: typeof whole) => parts.flatMap(({ logprobs }) => logprobs ?? []).map(({ token }) => token);
  expect(tokens(streamed)).toEqual(tokens(whole));
});
