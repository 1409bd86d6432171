/** What of a compaction is shown when its engine fails on the way, and another begins anew. */
import { expect, test } from "bun:test";
import type { InferenceEvent } from "../../src/inference/event.ts";
import { Fault } from "../../src/inference/fault.ts";
import type { AttemptRequest } from "../../src/usage/attempt-request.ts";
import { Compacting } from "../../src/usage/compacting.ts";
import { type EngineAnswer, nowhereYet } from "../../src/usage/engine-answer.ts";

type Batch = InferenceEvent[];
const start: InferenceEvent = { type: "response-start", responseId: "resp_1", model: "a/b", createdAtSeconds: 1 };
const says = (kind: "text" | "reasoning", delta: string): Batch => [
  { type: "part-start", index: 0, part: { kind } },
  { type: "part-delta", index: 0, delta },
];
const end: InferenceEvent = { type: "response-end", reason: "stop" };
const failure: InferenceEvent = { type: "response-failed", fault: new Fault("upstream_unavailable", "gone") };

async function shown(batches: Batch[], leftOutTurns = 0): Promise<Batch[]> {
  async function* told() {
    yield* batches;
  }
  const opened: EngineAnswer = { events: told(), progress: nowhereYet() };
  const compaction = { summary: null, leftOutTurns, notice: null };
  const attemptRequest = {
    request: { turns: [], compaction },
    signal: { aborted: false },
  } as unknown as AttemptRequest;
  const out: Batch[] = [];
  for await (const batch of new Compacting(() => opened, attemptRequest)) out.push(batch);
  return out;
}

test("nothing of an answer that begins anew before its first word is counted twice", async () => {
  const thought = says("reasoning", "hm");
  expect(await shown([[start, ...thought], [start], [start, ...says("text", "Goal")], [end]])).toEqual([
    [start, ...says("text", "Goal")],
    [end],
  ]);
});

test("one that begins anew after it is marked as the first was, and starts a batch", async () => {
  const marked = { ...start, leftOutTurns: 3 };
  expect(await shown([[start, ...says("text", "Go")], [start], [start, ...says("text", "Goal")], [end]], 3)).toEqual([
    [marked, ...says("text", "Go")],
    [marked, ...says("text", "Goal")],
    [end],
  ]);
});

test("one that begins anew and then says nothing has failed", async () => {
  const anew = await shown([[start, ...says("text", "Go")], [start], [start, end]]);
  expect(anew.at(-1)).toMatchObject([{ type: "response-failed", fault: { code: "upstream_unavailable" } }]);
});

test("a failure after the first word is told as it is", async () => {
  const [, last] = await shown([[start, ...says("text", "Go")], [failure]]);
  expect(last).toEqual([failure]);
});
