/**
 * The end of an answer's log if its node is gone, or was frozen for so long that another node may have settled its run:
 * all readers get the same end, and the idempotency key is free unless the run was charged.
 */
import { expect, test } from "bun:test";
import { Fault } from "../../../src/core/inference/fault.ts";
import { type Clock, systemClock } from "../../../src/core/time/clock.ts";
import { Follower } from "../../../src/features/responses/follower.ts";
import type { KeptEnd } from "../../../src/features/responses/store/kept.ts";
import { LogsModel } from "../../histories/logs.ts";
import { readerEnding } from "../../histories/reader-ends.ts";
import { NodeClock, Time } from "../../histories/time.ts";
import { endedRun, keepingOf, needsOf, openAnswer, waitingCall } from "./keeping-parts.ts";

/** The store of one answer and the log of that answer. */
function stores(clock: Clock = systemClock()) {
  const done: string[] = [];
  const log = new LogsModel();
  /** Which of the two stores cannot be reached now. */
  const away = { answers: false, logs: false };
  const kept = openAnswer();
  const answers = {
    find: async () => ({ ...kept }),
    async end(_: string, { state }: KeptEnd) {
      if (away.answers) throw new Error("the database is away");
      done.push(state);
      kept.state = state;
      return true;
    },
    async abandon() {
      done.push("free");
      Object.assign(kept, { state: "ended", body: null });
      return true;
    },
    free: async () => void done.push("deleted"),
    writeNote: async () => {},
  };
  const logs = {
    async append(_: unknown, number: number, entry: { text: string; isEnd: boolean }) {
      if (away.logs) throw new Error("Redis is away");
      return log.append("log", number, { ...entry });
    },
    read: async (_: unknown, from: number) => log.read("log", from),
    remove: async () => log.remove("log"),
  };
  const receipt = endedRun(0, true);
  const needs = needsOf({ answers, logs, clock }, () => ({ ...receipt }));
  const entries = () => log.read("log", 1);
  return {
    needs,
    away,
    kept,
    receipt,
    done,
    log,
    text: () =>
      entries()
        .map((entry) => entry.text)
        .join(""),
    entries,
  };
}

/** The same stores, with a clock that a test moves. */
function storesInTime() {
  const time = new Time(0);
  return { time, it: stores(new NodeClock(time, { offset_ms: 0, rate: 1, arrivalsFirst: false })) };
}

const lostLease = new Fault("storage_unavailable", "The lease was lost.", { retryAfterSeconds: 5 });

/**
 * A streamed answer whose run has produced some text and then completed or failed (its lease was lost, or its engine
 * broke off).
 */
async function streaming({ needs }: ReturnType<typeof stores>, outcome: "failed" | "completed") {
  const notes = { outcome, firstPart_ms: 1, stream: true };
  const call = { notes, signal: { reason: lostLease }, request: { signal: {} } };
  const keeping = keepingOf(needs, call, { isStream: true });
  await keeping.begin();
  const confirmation = Promise.withResolvers<void>();
  let confirmed = Promise.resolve();
  keeping.follows({ confirmed: () => confirmed });
  await keeping.open({ stream: true, headers: {} });
  const dispose = () => {
    // The run is disposed of before the answer, and settles: the settlement is confirmed when the test says so.
    confirmed = confirmation.promise;
    return keeping[Symbol.asyncDispose]();
  };
  return { keeping, dispose, confirm: () => confirmation.resolve() };
}

async function failing(it: ReturnType<typeof stores>) {
  const { keeping, dispose, confirm } = await streaming(it, "failed");
  keeping.write("said;");
  keeping.write("failed;", true);
  await keeping.end();
  return { disposed: dispose(), confirm };
}

test("a node writes the failure of an answer only when it knows that it has settled the run itself", async () => {
  for (const recovered of [true, false]) {
    const it = stores();
    const { disposed, confirm } = await failing(it);
    await new Promise(setImmediate);
    // The text so far can be read already, in case this node dies.
    expect([it.done, it.text(), it.entries().some(({ isEnd }) => isEnd)]).toEqual([[], "said;", false]);
    Object.assign(it.receipt, { recovered, nanos: { charged: recovered ? 0 : 5 } });
    confirm();
    await disposed;
    if (recovered) expect([it.done, it.entries().some(({ isEnd }) => isEnd)]).toEqual([["free"], false]);
    else expect([it.done, it.text(), it.entries().at(-1)?.isEnd]).toEqual([["ended"], "said;failed;", true]);
  }
});

test("an answer whose log was lost while the database was away is lost for its repeats, too, not cut short", async () => {
  for (const outcome of ["completed", "failed"] as const) {
    const { time, it } = storesInTime();
    Object.assign(it.receipt, { recovered: false, nanos: { charged: 5 } });
    const passes = async (for_ms: number) => {
      for (const until_ms = time.now_ms + for_ms; time.now_ms < until_ms && time.step(); )
        await new Promise(setImmediate);
    };
    const { keeping, dispose, confirm } = await streaming(it, outcome);
    Object.assign(it.away, { answers: true, logs: true });
    keeping.write("said;");
    if (outcome === "failed") keeping.write("failed;", true);
    const disposed = keeping.end().then(dispose);
    await passes(20_000);
    expect([outcome, it.done]).toEqual([outcome, []]);
    Object.assign(it.away, { answers: false, logs: false });
    confirm();
    await passes(1_000);
    await disposed;
    expect([outcome, it.done, it.kept.state]).toEqual([outcome, ["lost"], "lost"]);
  }
});

async function reader({ needs, kept }: ReturnType<typeof stores>) {
  const follower = new Follower(needs, waitingCall, { ...kept });
  expect(await follower.opened()).toBeTrue();
  return follower;
}

/** Appends the entries of a node that has produced some text, and then nothing more. */
function saying({ log }: ReturnType<typeof stores>) {
  log.append("log", 0, { text: '{"stream":true,"headers":{}}', isEnd: false });
  log.append("log", 1, { text: "said;", isEnd: false });
}

/** Reads the log to its end, as a repeat does (src/features/responses/replay.ts). */
async function readToEnd(follower: Follower): Promise<string> {
  let text = "";
  for (;;) {
    const entries = await follower.read();
    if (typeof entries !== "string") {
      text += entries.map((entry) => entry.text).join("");
      if (entries.at(-1)?.isEnd) return text;
      continue;
    }
    return text + (await follower.endAs(entries, readerEnding));
  }
}

test("all repeats of an answer whose node is gone get the same bytes, and the first of them frees the key", async () => {
  const it = stores();
  saying(it);
  const readers = await Promise.all([reader(it), reader(it)]);
  expect(await readToEnd(readers[0]!)).toBe("said;gone;");
  expect(it.done).toEqual(["free"]);
  expect(await readToEnd(readers[1]!)).toBe("said;gone;");
});

test("a repeat that ends the log of a node that comes back in between says what that node has said", async () => {
  const it = stores();
  saying(it);
  const [first, second] = await Promise.all([reader(it), reader(it)]);
  it.log.append("log", 2, { text: "more;", isEnd: false });
  expect(await first!.endAs("free", readerEnding)).toBe("more;gone;");
  // The answer's node is back, and finds that the log has ended.
  expect(it.log.append("log", 3, { text: "much more;", isEnd: false })).toBe("ended");
  expect(await second!.endAs("free", readerEnding)).toBe("more;gone;");
});

test("a repeat that has joined a stream which failed before it began is not told that a node is gone", async () => {
  const it = stores();
  saying(it);
  const follower = await reader(it);
  Object.assign(it.needs.kept.answers, { find: async () => null });
  expect(await readToEnd(follower)).toBe("said;refused;");
});

test("the key of a whole answer is free if its node died between its text and its end, and it was charged nothing", async () => {
  const it = stores();
  it.log.append("log", 0, { text: '{"stream":false,"headers":{}}', isEnd: false });
  // A text of this size is appended before the answer's end (src/features/responses/log-writer.ts).
  it.log.append("log", 1, { text: "x".repeat(70_000), isEnd: false });
  Object.assign(it.needs.kept.answers, { begin: async () => (it.kept.body === null ? "begun" : { ...it.kept }) });
  expect(await keepingOf(it.needs, waitingCall, {}).begin()).toBeNull();
  expect(it.done).toEqual(["free"]);
});

test("a stream that its node settled, and whose end it did not write, is ended by its first reader, and keeps its key", async () => {
  const { time, it } = storesInTime();
  Object.assign(it.receipt, { recovered: false, nanos: { charged: 5 } });
  saying(it);
  const texts: string[] = [];
  for (const follower of [await reader(it), await reader(it)])
    time.turn(() => {
      void readToEnd(follower).then((text) => texts.push(text));
    });
  while (time.now_ms < 5_000 && time.step());
  // The node of the stream may still be about to write the end.
  expect([texts, it.done]).toEqual([[], []]);
  while (time.now_ms < 30_000 && time.step());
  expect(texts).toEqual(["said;cut;", "said;cut;"]);
  expect([it.text(), it.kept.state, it.kept.body]).toEqual(["said;cut;", "ended", "00"]);
});

test("a stored response whose node died before its charge is not lost while the lease of that node lasts", async () => {
  const { time, it } = storesInTime();
  Object.assign(it.kept, { state: "ended", responseId: "resp_1", response: '{"status":"completed"}' });
  Object.assign(it.receipt, { endedAt: null, recovered: false });
  saying(it);
  const follower = await reader(it);
  let read = "";
  time.turn(() => {
    void readToEnd(follower).then((text) => {
      read = text;
    });
  });
  const passes = (for_ms: number) => {
    const until_ms = time.now_ms + for_ms;
    while (time.now_ms < until_ms && time.step());
  };
  passes(60_000);
  expect([read, it.done]).toEqual(["", []]);
  // Another node settles the dead node's hold.
  Object.assign(it.receipt, { endedAt: new Date(60_000), recovered: true });
  passes(20_000);
  expect([read, it.done]).toEqual(["said;gone;", ["free"]]);
});
