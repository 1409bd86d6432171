/** The writer of an answer's log, on a slow store; and the claim of an idempotency key that another node has freed. */
import { expect, test } from "bun:test";
import { Fault } from "../../../src/core/inference/fault.ts";
import type { ResponseObject } from "../../../src/core/protocol/openai-responses/contract.ts";
import { type Clock, systemClock } from "../../../src/core/time/clock.ts";
import { currentResponse, earlierResponse } from "../../../src/features/responses/current-response.ts";
import { Follower } from "../../../src/features/responses/follower.ts";
import type { Keeping } from "../../../src/features/responses/keeping.ts";
import { LogWriter } from "../../../src/features/responses/log-writer.ts";
import { isUngranted } from "../../../src/features/responses/needs.ts";
import { roomOf } from "../../../src/features/responses/room.ts";
import type { LogEntry } from "../../../src/features/responses/store/answer-log.ts";
import type { KeptEnd } from "../../../src/features/responses/store/kept.ts";
import { codeOf, endedRun, keepingOf, name, needsOf, openAnswer, waitingCall } from "./keeping-parts.ts";

const clock = systemClock();
const text = "x".repeat(100_000);

test("an answer waits for a store that is slower than its engine, and nothing of it is lost", async () => {
  const stored: LogEntry[] = [];
  let isOpen = false;
  let letGo = () => {};
  const append = async (_: unknown, __: number, entry: LogEntry) => {
    if (!isOpen) await new Promise<void>((resolve) => (letGo = resolve));
    stored.push(entry);
    return "appended" as const;
  };
  const logs = { append, read: async () => [], remove: async () => {} };
  const lost: unknown[] = [];
  const writer = new LogWriter({
    logs,
    name,
    bytes_max: 16 * 1024 * 1024,
    clock,
    lost: (_, cause) => void lost.push(cause),
  });
  isOpen = true;
  await writer.open("head");
  isOpen = false;
  for (let time = 0; time < 10; time++) writer.write(text);
  let hasRoom = false;
  const room = writer.room().then(() => {
    hasRoom = true;
  });
  await Bun.sleep(20);
  expect(hasRoom).toBeFalse();
  isOpen = true;
  letGo();
  await room;
  await writer.end();
  expect(stored.map((entry) => entry.text).join("")).toBe(`head${text.repeat(10)}`);
  expect([stored.at(-1)!.isEnd, lost]).toEqual([true, []]);
});

test("a node whose claim was freed meanwhile begins no background response", async () => {
  const keeping = keepingOf(needsOf({ answers: { respond: async () => false } }), {}, { isBackground: true });
  expect(await keeping.begin()).toBeNull();
  expect(await codeOf(keeping.respond({ id: "resp_1" } as ResponseObject))).toBe("storage_unavailable");
});

for (const isBackground of [true, false])
  test(`the key of ${isBackground ? "a background response" : "an answer"} that failed is free once its settlement is confirmed`, async () => {
    const done: string[] = [];
    // Records the word only in a later turn of the event loop, because the request must not end before the store has
    // replied.
    const stored = (word: string) => new Promise<void>((resolve) => setImmediate(resolve)).then(() => done.push(word));
    const answers = {
      respond: async () => true,
      end: async (_: string, { freesClaim }: { freesClaim?: boolean }) => {
        await stored(freesClaim ? "freed" : "ended");
        return true;
      },
      free: () => stored("freed"),
      writeNote: async () => {},
    };
    const fault = new Fault("upstream_unavailable", "The engine failed.", { retryAfterSeconds: 1 });
    const call = { notes: { outcome: "failed" }, signal: { reason: fault }, request: { signal: {} } };
    const keeping = keepingOf(needsOf({ answers }), call, { isBackground });
    await keeping.begin();
    const confirmation = Promise.withResolvers<void>();
    keeping.follows({ confirmed: () => confirmation.promise });
    if (isBackground) await keeping.respond({ id: "resp_1", output: [] } as unknown as ResponseObject);
    await keeping.fails(fault);
    const disposed = keeping[Symbol.asyncDispose]();
    await new Promise(setImmediate);
    expect(done).toEqual([]);
    confirmation.resolve();
    await disposed;
    expect(done).toEqual(["freed"]);
  });

/** A background response that has begun, on a store with these functions. */
async function begun(answers: object, onClock: Clock = clock): Promise<Keeping> {
  const needs = needsOf({ answers: { respond: async () => true, ...answers }, clock: onClock });
  const keeping = keepingOf(needs, {}, { isBackground: true });
  await keeping.begin();
  await keeping.respond({ id: "resp_1", status: "in_progress" } as ResponseObject);
  return keeping;
}
const completed = { id: "resp_1", status: "completed" } as ResponseObject;

test("a background response whose end the store does not confirm is ended again", async () => {
  for (const isCarriedOut of [false, true]) {
    let response: string | null = null;
    let isAway = true;
    const keeping = await begun({
      async end(_: string, end: { response: string }) {
        const isOpen = response === null;
        if (isCarriedOut || !isAway) response ??= end.response;
        if (isAway) throw new Error("away");
        return isOpen;
      },
      async find() {
        return { response };
      },
    }).finally(() => setTimeout(() => (isAway = false), 20));
    expect(await keeping.finish(completed)).toBe(true);
    expect(JSON.parse(response!)).toEqual(completed);
  }
});

test("the end of a background response waits out a store that is away for seconds, and is given up after ten", async () => {
  for (const [away_ms, isStored] of [
    [9_000, true],
    [60_000, false],
  ] as const) {
    let now_ms = 0;
    const quick = { now_ms: () => now_ms, after: quickAfter };
    // The store replies at once, so timers of more than half a second, which are deadlines for its replies, never fire.
    function quickAfter(delay_ms: number, run: () => void): () => void {
      const isDeadline = delay_ms > 500;
      if (!isDeadline) {
        now_ms += delay_ms;
        setImmediate(run);
      }
      return () => {};
    }
    const end = async () => {
      if (now_ms < away_ms) throw new Error("away");
      return true;
    };
    const keeping = await begun({ end }, quick);
    expect(await keeping.finish(completed)).toBe(isStored);
    expect(now_ms).toBeLessThan(11_000);
  }
});

test("a background response that was cancelled is not ended as completed", async () => {
  const keeping = await begun({ end: async () => false, find: async () => ({ response: "{}" }) });
  expect(await keeping.finish(completed)).toBe(false);
});

test("a background response that was charged, and whose end was lost, is never charged again", async () => {
  const kept = openAnswer({ responseId: "resp_1", response: '{"status":"in_progress"}' });
  const answers = {
    find: async () => kept,
    async end(_: string, { response, freesClaim }: KeptEnd) {
      Object.assign(kept, { state: "ended", response, ...(freesClaim ? { body: null } : {}) });
    },
  };
  const needs = needsOf({ answers }, () => endedRun(5));
  for (let time = 0; time < 2; time++)
    expect(await codeOf(earlierResponse(needs, waitingCall, kept))).toBe("idempotency_answer_lost");
  expect(await currentResponse(needs, kept)).toMatchObject({ status: "failed", error: { code: "server_error" } });
  expect(kept.response).toContain("It was charged.");
});

test("a key whose background response was charged, and lost its beginning with a replica, is refused for good", async () => {
  const kept = openAnswer();
  const end = async (_: string, { state }: KeptEnd) => Object.assign(kept, { state }) !== null;
  const answers = { find: async () => kept, abandon: async () => false, end };
  const needs = needsOf({ answers }, () => endedRun(5));
  for (let time = 0; time < 2; time++)
    expect(await codeOf(earlierResponse(needs, waitingCall, kept))).toBe("idempotency_answer_lost");
  expect(kept.state).toBe("lost");
});

test("the log of a background response whose node died before it began stays empty", async () => {
  const kept = openAnswer({ responseId: "resp_1", response: "{}" });
  const appended: unknown[] = [];
  const end = async () => void Object.assign(kept, { state: "ended", body: null });
  const logs = { append: async (...entry: unknown[]) => void appended.push(entry) };
  const needs = needsOf({ answers: { find: async () => kept, end }, logs }, () => endedRun(0, true));
  expect(await new Follower(needs, waitingCall, { ...kept }).begun()).toBe(false);
  // If an entry were appended, another follower would read it as the log's head.
  expect(appended).toEqual([]);
});

test("a background response whose node was only slow goes on, and keeps its key", async () => {
  const kept = openAnswer();
  const ends: unknown[] = [];
  const answers = { find: async () => ({ ...kept }), end: async (...end: unknown[]) => void ends.push(end) };
  let isGranted = false;
  const receipt = () => {
    const seen = isGranted ? { ...endedRun(0), endedAt: null } : null;
    // The node was believed gone, and now wakes up: its request is granted, and it begins the response.
    isGranted = true;
    Object.assign(kept, { responseId: "resp_1", response: '{"id":"resp_1","status":"in_progress"}' });
    return seen;
  };
  const needs = needsOf({ answers }, receipt);
  expect(await codeOf(new Follower(needs, waitingCall, { ...kept }).begun())).toBe("storage_unavailable");
  expect(await currentResponse(needs, { ...kept })).toMatchObject({ status: "in_progress" });
  expect(ends).toEqual([]);
});

test("a background response goes on when a repeat finds its log gone", async () => {
  const kept = openAnswer({ responseId: "resp_1", response: "{}", age_ms: 0 });
  const ends: unknown[] = [];
  const answers = { find: async () => kept, end: async (...end: unknown[]) => void ends.push(end) };
  const follower = new Follower(needsOf({ answers, logs: { read: async () => "lost" } }), waitingCall, kept);
  expect(await codeOf(follower.begun())).toBe("idempotency_answer_lost");
  expect(ends).toEqual([]);
});

test("an answer whose log cannot begin is not begun", async () => {
  const logs = { append: () => Promise.reject(new Error("away")) };
  const keeping = keepingOf(needsOf({ answers: { find: async () => ({}) }, logs }), {}, { isStream: true });
  expect(await keeping.begin()).toBeNull();
  expect(await codeOf(keeping.open({ stream: true, headers: {} }))).toBe("storage_unavailable");
  expect(keeping.isKept).toBeFalse();
});

test("many new answers of an organization make the store look for room once, and those that follow once more", async () => {
  const looks: string[] = [];
  const removed: string[] = [];
  const due: (() => void)[] = [];
  const room = roomOf({
    answers: {
      async makeRoom(organizationId, bytes_max) {
        looks.push(`${organizationId} ${bytes_max}`);
        if (looks.length === 1) for (let time = 0; time < 10; time++) room.ask("org_1");
        if (looks.length === 2) throw new Error("away");
        return [{ requestId: "req_1", organizationId }];
      },
    },
    logs: { remove: async (names) => void removed.push(...names.map(({ requestId }) => requestId)) },
    organization_bytes_max: () => 7,
    failed: (cause) => void removed.push(String(cause)),
    clock: {
      after(_, act) {
        due.push(act);
        return () => {};
      },
    },
  });
  const elapse = async () => {
    due.shift()?.();
    await new Promise(setImmediate);
  };
  for (let time = 0; time < 1_000; time++) room.ask("org_1");
  room.ask("org_2");
  await elapse();
  expect([looks, removed]).toEqual([
    ["org_1 7", "org_2 7"],
    ["req_1", "Error: away"],
  ]);
  await elapse();
  expect(looks).toEqual(["org_1 7", "org_2 7", "org_1 7"]);
  expect(due).toEqual([]);
});

test("a claim without a grant is given up after a while, also if the clock was set back since", () => {
  const needs = needsOf({});
  expect([7_000, 9_000, -10, -3_600_000].map((age_ms) => isUngranted(needs, age_ms))).toEqual([
    false,
    true,
    false,
    true,
  ]);
});

test("a repeat whose log cannot be read at its end is put off", async () => {
  let reads = 0;
  const read = async () => (reads++ === 0 ? [] : Promise.reject(new Error("away")));
  const needs = needsOf({ answers: { find: async () => null }, logs: { read } });
  expect(await codeOf(new Follower(needs, waitingCall, openAnswer({ age_ms: 0 })).read())).toBe("storage_unavailable");
});
