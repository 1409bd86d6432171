/** The end of a streamed answer: what a client may count on when it reads the last frame. */
import { expect, test } from "bun:test";
import { primed, sseAnswer } from "../../../src/core/http/stream.ts";
import type { InferenceEvent } from "../../../src/core/inference/event.ts";
import { openaiChatCaller } from "../../../src/core/protocol/openai-chat/codec.ts";
import { validateChatRequest } from "../../../src/core/protocol/openai-chat/validate.ts";

const identity = { responseId: "chatcmpl-1", createdAtSeconds: 1, model: "acme/m" };
const wire = validateChatRequest(
  { model: "acme/m", stream: true, messages: [{ role: "user", content: "Say hello." }] },
  [],
);
const answer: InferenceEvent[][] = [
  [
    { type: "response-start", ...identity },
    { type: "part-start", index: 0, part: { kind: "text" } },
  ],
  [{ type: "part-delta", index: 0, delta: "hello" }],
  [
    { type: "part-end", index: 0 },
    { type: "response-end", reason: "stop" },
  ],
];

/** The frames that each read of the client brought, and whether the run had ended by then. */
async function readOf(batches: readonly InferenceEvent[][], ended: () => Promise<void>) {
  let isOver = false;
  const closed: string[] = [];
  async function* events() {
    yield* batches;
    await ended();
    isOver = true;
  }
  const encoder = openaiChatCaller.stream.encoder(wire, { requestId: "req_1", identity, inputTokensEstimate: 1 });
  const stream = await primed(events(), Number.POSITIVE_INFINITY);
  const owner = { left: () => closed.push("left"), closed: () => closed.push("closed") };
  const { body } = sseAnswer(stream, { encoder, heartbeat_ms: 60_000, headers: {} }).open(owner);
  const reads: { text: string; isOver: boolean }[] = [];
  for await (const bytes of body!) reads.push({ text: new TextDecoder().decode(bytes), isOver });
  return { reads, closed };
}

test("a run has ended when the client reads the last frame, which leaves with the end of the body", async () => {
  const { reads, closed } = await readOf(answer, async () => {
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
  });
  expect(reads.map(({ isOver }) => isOver)).toEqual([false, false, true]);
  expect(reads[0]!.text).toContain('"role":"assistant"');
  expect(reads[1]!.text).toContain("hello");
  expect(reads[2]!.text).toEndWith("data: [DONE]\n\n");
  expect(closed).toEqual(["closed"]);
});

test("a run that fails behind its last event costs the client no frame", async () => {
  const { reads, closed } = await readOf(answer, () => Promise.reject(new Error("a defect")));
  const text = reads.map((read) => read.text).join("");
  expect(text).toContain('"finish_reason":"stop"');
  expect(text).toEndWith("data: [DONE]\n\n");
  expect(closed).toEqual(["closed"]);
});
