/**
 * The text of an answer is stored in memory for counting its tokens, as far as there is memory for it; the stored part
 * represents the whole text.
 */
import { expect, test } from "bun:test";
import type { InferenceEvent } from "../../../src/core/inference/event.ts";
import { AnswerText } from "../../../src/core/usage/answer-text.ts";

const begin = (index: number, kind: "text" | "reasoning" = "text"): InferenceEvent => ({
  type: "part-start",
  index,
  part: { kind },
});
const call: InferenceEvent = {
  type: "part-start",
  index: 2,
  part: { kind: "tool-call", callId: "c", toolName: "look" },
};
const say = (index: number, delta: string): InferenceEvent => ({ type: "part-delta", index, delta });

function kept(events: InferenceEvent[], room_bytes = Number.POSITIVE_INFINITY) {
  let asked_bytes = 0;
  const text = new AnswerText((bytes) => {
    if (asked_bytes + bytes > room_bytes) return false;
    asked_bytes += bytes;
    return true;
  });
  for (const event of events) text.add(event);
  return { parts: text.parts, share: text.share, asked_bytes };
}

test("every part is kept whole, whatever its kind and however its deltas mix", () => {
  const { parts, share } = kept([
    ...[begin(0, "reasoning"), say(0, "so"), begin(1), say(1, "a"), call, say(2, '{"x"'), say(1, "b"), say(2, ":1}")],
    ...[say(0, " it is"), say(9, "of no part")],
  ]);
  expect(parts).toEqual([
    { kind: "reasoning", toolName: "", text: "so it is" },
    { kind: "text", toolName: "", text: "ab" },
    { kind: "tool-call", toolName: "look", text: '{"x":1}' },
  ]);
  expect(share).toBeGreaterThan(1);
});

test("thousands of deltas are one text, and memory is asked for in steps", () => {
  const words = Array.from({ length: 40_000 }, (_, at) => say(0, `${at} `));
  const { parts, share, asked_bytes } = kept([begin(0), ...words]);
  const text = words.map((word) => (word.type === "part-delta" ? word.delta : "")).join("");
  expect(parts).toEqual([{ kind: "text", toolName: "", text }]);
  expect(share).toBe(1);
  expect(asked_bytes).toBeGreaterThanOrEqual(text.length * 2);
  expect(asked_bytes - text.length * 2).toBeLessThan(64 * 1024);
});

test("beyond 1 MiB, or where there is no memory, the first part stands for all of it", () => {
  const page = "x".repeat(8 * 1024);
  const pages = (count: number) => [begin(0), ...Array.from({ length: count }, () => say(0, page))];
  for (const [count, room_bytes, kept_pages] of [
    [128, Number.POSITIVE_INFINITY, 64],
    [64, 128 * 1024, 8],
  ] as const) {
    const { parts, share, asked_bytes } = kept(pages(count), room_bytes);
    expect(parts[0]!.text.length).toBe(kept_pages * page.length);
    expect(share).toBe(count / kept_pages);
    expect(asked_bytes).toBeLessThanOrEqual(Math.min(room_bytes, 1024 * 1024));
  }
  expect(kept(pages(4), 0)).toMatchObject({ share: null, asked_bytes: 0 });
});
