/**
 * The result of an answer that nobody streams is the sum of its events: docs/design/usage.md, Answers that aren't
 * streamed.
 */
import { expect, test } from "bun:test";
import type { InferenceEvent } from "../../../src/core/inference/event.ts";
import { collect } from "../../../src/core/inference/result.ts";
import { noUsage } from "../../../src/core/inference/usage.ts";

function answer(model: string, texts: readonly string[]): InferenceEvent[] {
  const parts = texts.flatMap((delta, index): InferenceEvent[] => [
    { type: "part-start", index, part: { kind: "text" } },
    { type: "part-delta", index, delta },
    { type: "part-end", index },
  ]);
  return [{ type: "response-start", responseId: "r", model, createdAtSeconds: 1 }, ...parts];
}
const end: InferenceEvent = { type: "response-end", reason: "stop" };
const usage: InferenceEvent = { type: "usage", usage: { ...noUsage, inputTokens: 9, outputTokens: 9 } };

async function collected(events: readonly InferenceEvent[]) {
  async function* oneByOne() {
    for (const event of events) yield [event];
  }
  return collect(oneByOne());
}

test("an answer that begins anew has nothing of what it said before", async () => {
  const result = await collected([...answer("a", ["one", "two", "three"]), usage, ...answer("b", ["again"]), end]);
  expect(result.model).toBe("b");
  expect(result.parts.map(({ text }) => text)).toEqual(["again"]);
  expect(result.usage).toEqual(noUsage);
});

test("a stream that ends without its end is no answer", async () => {
  expect(collected(answer("a", ["one"]))).rejects.toThrow();
});

test("the stop sequence that ended an answer is said where there was one, and only there", async () => {
  const stopped = await collected([...answer("a", ["one"]), { ...end, stopSequence: "###" }]);
  expect(stopped.stopSequence).toBe("###");
  expect(Object.keys(await collected([...answer("a", ["one"]), end]))).not.toContain("stopSequence");
});
