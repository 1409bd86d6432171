/**
 * A request that is sent to its engine before the ledger has granted it: the engine begins at once, and its output is
 * held back until the grant. If the request ends without reading the output, the engine's answer is aborted.
 */
import { expect, test } from "bun:test";
import type { InferenceEvent } from "../../../src/core/inference/event.ts";
import { type EngineAnswer, initialProgress, startedAnswer } from "../../../src/core/usage/record.ts";

function opened() {
  const seen: string[] = [];
  async function* events(): AsyncGenerator<InferenceEvent[], void, void> {
    try {
      seen.push("asked");
      yield [{ type: "response-start", responseId: "r", model: "m", createdAtSeconds: 1 }];
      seen.push("read on");
      yield [{ type: "response-end", reason: "stop" }];
    } finally {
      seen.push("ended");
    }
  }
  return {
    seen,
    opened: {
      progress: initialProgress(),
      events: events(),
    } satisfies EngineAnswer,
  };
}

test("it is asked at once, and read from the beginning", async () => {
  const { seen, opened: before } = opened();
  const early = startedAnswer(before);
  expect(seen).toEqual(["asked"]);
  const types: string[] = [];
  for await (const batch of early.events) types.push(...batch.map((event) => event.type));
  expect(types).toEqual(["response-start", "response-end"]);
  expect(seen).toEqual(["asked", "read on", "ended"]);
});

test("one that is never read is ended all the same", async () => {
  const { seen, opened: before } = opened();
  await startedAnswer(before).events.return();
  expect(seen).toEqual(["asked", "ended"]);
});

test("one that is left in the middle is ended", async () => {
  const { seen, opened: before } = opened();
  for await (const _ of startedAnswer(before).events) break;
  expect(seen).toEqual(["asked", "ended"]);
});
