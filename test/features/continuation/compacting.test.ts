/** The events that a client gets of a compaction when its engine fails in the middle and another engine starts over. */
import { expect, test } from "bun:test";
import type { InferenceEvent } from "../../../src/core/inference/event.ts";
import { Fault } from "../../../src/core/inference/fault.ts";
import { queues } from "../../../src/core/routing/queues.ts";
import { Attempts } from "../../../src/core/usage/attempts.ts";
import { type EngineAnswer, initialProgress } from "../../../src/core/usage/record.ts";
import type { Open } from "../../../src/features/continuation/asking-again.ts";
import { Compacting } from "../../../src/features/continuation/compacting.ts";
import { capacityOf, modelOf, routeTo, upstreamOf } from "../../core/routing/models.ts";
import { attempting } from "../../core/usage/attempting.ts";
import { attemptsParts, recordOf } from "../../harness/patience.ts";
import { saying } from "../../harness/request.ts";
import { until } from "../../harness/until.ts";

type Batch = InferenceEvent[];
const start: InferenceEvent = { type: "response-start", responseId: "resp_1", model: "a/b", createdAtSeconds: 1 };
const says = (kind: "text" | "reasoning", delta: string): Batch => [
  { type: "part-start", index: 0, part: { kind } },
  { type: "part-delta", index: 0, delta },
];
const end: InferenceEvent = { type: "response-end", reason: "stop" };
const failure: InferenceEvent = { type: "response-failed", fault: new Fault("upstream_unavailable", "gone") };
const user = (text: string) => ({ role: "user" as const, parts: [{ kind: "text" as const, text }] });
const long = saying("", {
  turns: ["one", "two", "three", "in short"].map(user),
  compaction: { summary: null, leftOutTurns: 0, notice: null },
});

async function shown(batches: Batch[], leftOutTurns = 0): Promise<Batch[]> {
  async function* told() {
    yield* batches;
  }
  const opened: EngineAnswer = { events: told(), progress: initialProgress() };
  const request = saying("", { turns: [], compaction: { summary: null, leftOutTurns, notice: null } });
  return Array.fromAsync(new Compacting(() => opened, attempting(recordOf(modelOf([]), request))));
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

test("when the caller has left, no engine is asked with less of the conversation", async () => {
  const isTooLong = Promise.withResolvers<void>();
  let opened = 0;
  const open: Open = (_request, progress = initialProgress()) => {
    opened += 1;
    async function* tooLong(): AsyncGenerator<Batch, void, void> {
      await isTooLong.promise;
      yield [start, { type: "response-failed", fault: new Fault("context_length_exceeded", "too long") }];
    }
    return { events: tooLong(), progress };
  };
  const compacting = new Compacting(open, attempting(recordOf(modelOf([], { contextTokens: 1000 }), long)));
  const answer = compacting.next();
  const leaving = compacting.return();
  isTooLong.resolve();
  expect((await answer).value).toMatchObject([{ type: "response-failed", fault: { code: "context_length_exceeded" } }]);
  await leaving;
  expect(opened).toBe(1);
});

test("one that is asked again keeps its last engine on record while it waits, until the next attempt begins", async () => {
  const capacity = capacityOf({ concurrent_max: 1 });
  const route = (name: string) => routeTo(upstreamOf("http://127.0.0.1:9", { name, capacity }), { model: name });
  const [small, large] = [route("small"), route("large")];
  const slots = queues(() => performance.now());
  const other = slots.enter(large, { organizationId: "other", tokens: 1, share: { weight: 1, priority: 0 } });
  const model = modelOf([large], { contextTokens: 1000, outputTokens_max: 100 });
  const open: Open = (request, progress = initialProgress()) => {
    if (progress.attempts > 0) return new Attempts(attemptsParts({ queues: slots }), request, progress);
    async function* tooLong(): AsyncGenerator<Batch, void, void> {
      Object.assign(progress, { route: small, attempts: 1 });
      yield [start, { type: "response-failed", fault: new Fault("context_length_exceeded", "too long") }];
    }
    return { events: tooLong(), progress };
  };
  const room = { allowed: 100, held: 100 };
  const compacting = new Compacting(open, attempting(recordOf(model, long, { organizationId: "one" }), { room }));
  const answer = compacting.next();
  await until(() => slots.lengthOf(large) === 1, 5_000, "the shortened conversation to wait");
  expect(compacting.progress).toMatchObject({ route: { model: "small" }, attempts: 1, isAtEngine: false });
  other.release();
  await answer;
  expect(compacting.progress.route).toBe(large);
  expect(compacting.progress.attempts).toBeGreaterThan(1);
});
