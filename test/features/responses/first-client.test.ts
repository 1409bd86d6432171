/** The log in which a response is stored for later readers: its content and its end. */
import { expect, test } from "bun:test";
import { Call } from "../../../src/core/http/call.ts";
import type { SseOptions } from "../../../src/core/http/stream.ts";
import type { InferenceEvent } from "../../../src/core/inference/event.ts";
import { logged } from "../../../src/features/responses/first-client.ts";
import type { Keeping } from "../../../src/features/responses/keeping.ts";
import { until } from "../../harness/until.ts";

const encoder = {
  push: ({ type }: InferenceEvent) => [{ data: type }],
  end: () => [],
  frame: () => null,
  heartbeat: () => ": beat\n\n",
};
const options: SseOptions = { encoder, heartbeat_ms: 4, headers: {} };

/** A log whose end is stored once `ends` resolves. */
function keeping(ends: Promise<void>) {
  const it = { text: "", isEnding: false };
  const end = async () => {
    it.isEnding = true;
    await ends;
  };
  const write = (text: string) => {
    it.text += text;
  };
  const keeps = { write, end, room: async () => {} };
  return { it, keeps: keeps as unknown as Keeping };
}

const nobodys = () =>
  new Call("req_1", new Request("http://a/v1/responses"), "/v1/responses", {
    address: () => "",
    isLocal: () => true,
    keepOpen() {},
  });

async function* events(pause: Promise<void>): AsyncGenerator<InferenceEvent[], void, void> {
  await pause;
  yield [{ type: "response-end", reason: "stop" }];
}

test("no heartbeat comes behind the end of a log, however long the end takes to be stored", async () => {
  const [silence, ending] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const [runs, ends] = [keeping(ending.promise), keeping(ending.promise)];
  const running = logged(nobodys(), { head: [], pending: null, rest: events(silence.promise) }, options, runs.keeps);
  const over = logged(nobodys(), { head: [], pending: null, rest: events(Promise.resolve()) }, options, ends.keeps);
  await until(() => ends.it.isEnding, 2_000, "the end");
  const { text } = ends.it;
  // The heartbeats in the other log show that enough time has passed for one.
  const before = runs.it.text.length;
  await until(() => runs.it.text.length > before + 50, 5_000, "heartbeats of an answer that goes on");
  expect(ends.it.text).toBe(text);
  silence.resolve();
  ending.resolve();
  await Promise.all([running, over]);
  expect(text).toEndWith("response-end\n\n");
});

test("a defect in the middle of a kept answer ends its log as a failure, and its cause is noted for the log of the node", async () => {
  const { it, keeps } = keeping(Promise.resolve());
  const defect = new Error("a defect");
  const push = ({ type }: InferenceEvent) => {
    if (type === "response-end") throw defect;
    return [{ data: type }];
  };
  const call = nobodys();
  const stream = { head: [], pending: null, rest: events(Promise.resolve()) };
  await logged(call, stream, { ...options, encoder: { ...encoder, push } }, keeps);
  expect(it.text).toBe("data: response-failed\n\n");
  expect(call.notes).toMatchObject({ code: "internal_error", cause: defect });
});
