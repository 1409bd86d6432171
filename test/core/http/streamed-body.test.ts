/**
 * A client that reads nothing of a streamed answer for five minutes counts as gone, whichever kind of answer it is:
 * docs/design/service.md, Slow readers.
 */
import { afterEach, beforeEach, expect, spyOn, test } from "bun:test";
import type { Call } from "../../../src/core/http/call.ts";
import type { Primed, StreamedAnswer } from "../../../src/core/http/stream.ts";
import { streamedBody } from "../../../src/core/http/streamed-body.ts";
import type { InferenceEvent } from "../../../src/core/inference/event.ts";
import type { StreamEncoder } from "../../../src/core/protocol/codec.ts";
import type { Run } from "../../../src/core/usage/run.ts";
import { wholeAnswer } from "../../../src/features/operations/answer.ts";
import { keptStream } from "../../../src/features/responses/first-client.ts";
import type { Follower } from "../../../src/features/responses/follower.ts";
import type { Keeping } from "../../../src/features/responses/keeping.ts";
import { replayed } from "../../../src/features/responses/replay.ts";
import { until } from "../../harness/until.ts";

/** The timers of mocked `setInterval` calls, each with its callback and interval. */
const due = new Map<unknown, { run: () => void; every_ms: number }>();
const spies: { mockRestore(): void }[] = [];
beforeEach(() => {
  due.clear();
  const set = spyOn(globalThis, "setInterval").mockImplementation(((run: () => void, every_ms: number) => {
    const timer = {};
    due.set(timer, { run, every_ms });
    return timer;
  }) as never);
  const clear = spyOn(globalThis, "clearInterval").mockImplementation((timer) => void due.delete(timer));
  spies.push(set, clear);
});
afterEach(() => {
  for (const spy of spies.splice(0)) spy.mockRestore();
});

/** Lets minutes pass for timers with intervals of a minute and more; others do not run. */
function pass(minutes: number): void {
  for (const [timer, { run, every_ms }] of [...due]) {
    if (every_ms < 60_000) continue;
    for (let at_ms = every_ms; at_ms <= minutes * 60_000 && due.has(timer); at_ms += every_ms) run();
  }
}

/** An owner of an answer, and the calls that it got. */
function ownerOf() {
  const told: string[] = [];
  return { told, owner: { left: () => void told.push("left"), closed: () => void told.push("closed") } };
}

/** Opens the answer for a client that reads nothing. */
async function unread(answer: StreamedAnswer) {
  const { told, owner } = ownerOf();
  const { body } = answer.open(owner);
  // After a turn of the event loop, everything that is ready to be read is in the stream.
  await Bun.sleep(0);
  return { told, body: body! };
}

const piece: InferenceEvent = { type: "passed", bytes: new Uint8Array(1024 * 1024) };
const identity = { responseId: "resp_1", createdAtSeconds: 1, model: "acme/m" };
const encoder = { frame: () => null, push: () => [{ event: "message", data: "x" }], heartbeat: () => "" };
const options = { encoder: encoder as unknown as StreamEncoder, heartbeat_ms: 10_000, headers: {} };

/** A large answer without end, of a protocol that does not stream it. */
async function poured() {
  async function* events() {
    for (;;) yield [piece];
  }
  const run = { events: events() } as unknown as Run;
  return (await wholeAnswer(run, { head: "[", tail: () => "]" }, {}, () => {})) as StreamedAnswer;
}

/** A stored answer that comes to its end or, if its log is lost, may end only when its client reads on. */
function kept(isLogged: boolean) {
  const seen = { left: 0, isOver: false };
  async function* events(): AsyncGenerator<InferenceEvent[], void, void> {
    yield [{ type: "response-start", ...identity }];
    yield [{ type: "response-start", ...identity }];
    seen.isOver = true;
  }
  const keeping = {
    goesOn: isLogged,
    streamsTo() {},
    write() {},
    room: async () => {},
    end: async () => {},
  } as unknown as Keeping;
  const call = { keepsText: () => true, leave: () => void seen.left++ } as unknown as Call;
  const stream: Primed = { head: [], pending: null, rest: events() };
  return { seen, answer: keptStream(call, stream, options, keeping) };
}

/** An answer that is read from a log that always has more entries. */
function replay() {
  const earlier = { read: async () => [{ text: "x", isEnd: false }], name: { requestId: "req_1" } };
  const ending = { saw() {}, end: () => "" };
  return replayed(earlier as unknown as Follower, { headers: {}, heartbeat_ms: 10_000, ending: ending as never });
}

test.each([
  ["a large answer without streaming", poured],
  ["an answer from a log", async () => replay()],
])("a client that reads nothing of %s has left after five minutes, and not before", async (_, answer) => {
  const { told, body } = await unread(await answer());
  pass(4.9);
  expect(told).toEqual([]);
  pass(6.3);
  expect(told).toEqual(["left", "closed"]);
  expect(due.size).toBe(0);
  // If the client reads on after all, it gets an error instead of an end.
  const reader = body.getReader();
  expect(reader.read()).rejects.toThrow("reads nothing");
});

test("nor does a client that reads nothing keep the places of a kept answer, which goes on without it", async () => {
  const { seen, answer } = kept(true);
  const { told } = await unread(answer);
  expect(seen.isOver).toBe(true);
  expect(told).toEqual([]);
  pass(6.3);
  expect([told, seen.left]).toEqual([["closed"], 0]);
});

test("a kept answer whose log is lost ends with the client that reads nothing", async () => {
  const { seen, answer } = kept(false);
  const { told } = await unread(answer);
  expect(seen.isOver).toBe(false);
  pass(6.3);
  expect(seen.left).toBe(1);
  await until(() => told.length > 0, 5_000, "the answer to be closed");
  expect(told).toEqual(["closed"]);
});

test("a client that reads something every four minutes stays, and so does one whose engine is silent for an hour", async () => {
  const { told, body } = await unread(await poured());
  const reader = body.getReader();
  for (let reads = 0; reads < 5; reads++) {
    pass(4);
    expect((await reader.read()).done).toBe(false);
    await Bun.sleep(0);
  }
  expect(told).toEqual([]);
  await reader.cancel();
  const silent = ownerOf();
  const source = { pull: () => new Promise<void>(() => {}), cancel() {} };
  const waiting = streamedBody(silent.owner, () => source).getReader();
  void waiting.read();
  pass(60);
  expect(silent.told).toEqual([]);
});
