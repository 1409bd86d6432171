/**
 * The supervisor's reaction to workers that end, hang or never start. The workers are fakes; time is real, except in
 * tests with fake timers.
 */

import { afterEach, expect, jest, test } from "bun:test";
import { merger } from "../../../src/features/telemetry/merged.ts";
import type { Child } from "../../../src/features/workers/crew.ts";
import type { Order, Word } from "../../../src/features/workers/messages.ts";
import { isQuick, pauseAfter } from "../../../src/features/workers/pause.ts";
import { supervisor } from "../../../src/features/workers/supervisor.ts";

interface Played {
  number: number;
  orders: Order[];
  say(word: Word): void;
  end(code: number, signal?: string): void;
  isKilled: boolean;
}

function rig(workers: number) {
  const played: Played[] = [];
  const events: string[] = [];
  const applied: unknown[] = [];
  const bytes = new Uint8Array([1]);
  const node = supervisor({
    identity: { id: "0193a3b4-5c6d-7e8f-9a0b-1c2d3e4f5a6b", startedAt: new Date(0) },
    ...{ workers, port: 1, operatorPort: null, now_ms: () => performance.now() },
    readFile: () => ({ bytes, changedAt_ms: 0 }),
    startParts: { limits: "those of the start" },
    applied: (file) => void applied.push(file),
    metrics: merger(),
    log: { event: (_level, event, fields) => void events.push(`${event} ${JSON.stringify(fields)}`) },
    start(number, hear): Child {
      const { promise: ended, resolve } = Promise.withResolvers<{ code: number; signal: string | null }>();
      const one: Played = {
        ...{ number, orders: [], say: hear, isKilled: false },
        end: (code, signal) => resolve({ code, signal: signal ?? null }),
      };
      played.push(one);
      const kill = () => {
        one.isKilled = true;
        one.end(137, "SIGKILL");
      };
      return { send: (order) => void one.orders.push(order), kill, ended };
    },
  });
  const settled = () => Bun.sleep(1);
  const begin = (one: Played) => {
    one.say({ word: "here" });
    one.say({ word: "serving", url: "http://x" });
  };
  const serve = async (...indices: number[]) => {
    for (const index of indices) {
      begin(played[index]!);
      await settled();
    }
  };
  return { node, played, events, applied, begin, serve, settled };
}

/** A node with two workers that serve, on fake timers. */
async function servingOnFakeTimers() {
  jest.useFakeTimers();
  const { node, played, begin } = rig(2);
  const turn = async () => {
    for (let turns = 0; turns < 10; turns++) await Promise.resolve();
  };
  for (const index of [0, 1]) {
    begin(played[index]!);
    await turn();
  }
  return { node, played, turn };
}

afterEach(() => jest.useRealTimers());

test("the first worker starts alone; when it serves, so do the others, and then the node has begun", async () => {
  const { node, played, serve } = rig(3);
  expect(played.map(({ number }) => number)).toEqual([1]);
  await serve(0);
  expect(played.map(({ number }) => number)).toEqual([1, 2, 3]);
  let began: string | null = null;
  void node.began.then((url) => {
    began = url;
  });
  await serve(1);
  expect(began).toBeNull();
  await serve(2);
  expect(began as string | null).toBe("http://x");
  const file = { bytes: new Uint8Array([1]) };
  const startParts = { limits: "those of the start" };
  expect(played[2]!.orders[0]).toMatchObject({ order: "begin", workers: 3, port: 1, file, startParts });
});

test("where the first cannot start, nothing else is tried, and its exit code is the node's", async () => {
  const { node, played } = rig(3);
  played[0]!.end(1);
  expect(await node.ended).toBe(1);
  expect(await node.began).toBeNull();
  expect(played).toHaveLength(1);
});

test("where all are lost and none can start any more, the node ends; while one serves, it goes on", async () => {
  const { node, played, events, serve, settled } = rig(2);
  await serve(0);
  played[1]!.end(1);
  await settled();
  let code: number | null = null;
  void node.ended.then((ended) => {
    code = ended;
  });
  expect(await node.began).toBe("http://x");
  expect(events.at(-1)).toBe('worker_lost {"worker":2,"code":1,"again_ms":100}');
  played[0]!.end(0, "SIGSEGV");
  await settled();
  expect(events.at(-1)).toContain('"signal":"SIGSEGV"');
  expect(code).toBeNull();
  while (played.length < 4) await settled();
  played[2]!.end(1);
  played[3]!.end(1);
  await settled();
  expect(code as number | null).toBe(1);
});

test("a worker that says nothing for half a minute is killed and replaced; one that says it is well is not", async () => {
  const { node, played, turn } = await servingOnFakeTimers();
  for (let second = 0; second < 31; second++) {
    jest.advanceTimersByTime(1000);
    played[0]!.say({ word: "well", problem: null, open: 0 });
    await turn();
  }
  expect(played.map(({ isKilled }) => isKilled).slice(0, 2)).toEqual([false, true]);
  expect(played.at(-1)!.number).toBe(2);
  expect(played).toHaveLength(3);
  node.stop("SIGTERM");
  played[0]!.end(0);
  await turn();
  expect(await node.ended).toBe(0);
});

test("a stop is told to those that serve, ends those that do not yet, and starts nobody any more", async () => {
  const { node, played, serve, settled } = rig(2);
  await serve(0);
  node.stop("SIGTERM");
  expect(played[0]!.orders.at(-1)).toEqual({ order: "stop", signal: "SIGTERM" });
  expect(played[1]!.isKilled).toBeTrue();
  node.stop("SIGTERM");
  expect(played[0]!.orders.at(-1)).toEqual({ order: "hurry" });
  played[0]!.end(0);
  expect(await node.ended).toBe(0);
  await settled();
  expect(played).toHaveLength(2);
});

test("a stop calls off the next attempt of a worker that was lost", async () => {
  const { node, played, turn } = await servingOnFakeTimers();
  played[1]!.end(1);
  await turn();
  node.stop("SIGTERM");
  jest.advanceTimersByTime(1_000);
  expect(played).toHaveLength(2);
  played[0]!.end(0);
  expect(await node.ended).toBe(0);
});

test("a reload is taken by all or none; one that starts meanwhile is told afterwards", async () => {
  const { node, played, applied, serve } = rig(2);
  await serve(0, 1);
  node.reload();
  for (const one of played) expect(one.orders.at(-1)).toMatchObject({ order: "reload", round: 1 });
  played[0]!.say({ word: "vote", round: 1, problems: [] });
  // A second vote by the same worker in one round, and a vote in a round that does not exist, are ignored.
  played[0]!.say({ word: "vote", round: 1, problems: ["late"] });
  played[1]!.say({ word: "vote", round: 7, problems: ["never"] });
  expect(played[0]!.orders.at(-1)).toMatchObject({ order: "reload" });
  played[1]!.say({ word: "vote", round: 1, problems: ["plan 'gold' is used"] });
  for (const one of played)
    expect(one.orders.at(-1)).toEqual({ order: "verdict", round: 1, problems: ["plan 'gold' is used"] });
  expect(applied).toEqual([]);
  node.reload();
  played[0]!.say({ word: "vote", round: 2, problems: [] });
  // The worker dies before it votes on the reload, so the others decide.
  played[1]!.end(0, "SIGKILL");
  await Bun.sleep(5);
  const verdicts = played[0]!.orders.filter(({ order }) => order === "verdict");
  expect(verdicts.at(-1)).toEqual({ order: "verdict", round: 2, problems: [] });
  expect(applied).toHaveLength(1);
});

test("a reload that is asked for before anybody serves is made by the first worker that does", async () => {
  const { node, played, serve } = rig(2);
  node.reload();
  await serve(0);
  expect(played[0]!.orders.map(({ order }) => order)).toContain("reload");
});

test("a reload does not wait for a worker that does not vote, and says which", async () => {
  const { node, played } = await servingOnFakeTimers();
  node.reload();
  played[0]!.say({ word: "vote", round: 1, problems: [] });
  jest.advanceTimersByTime(15_000);
  const problems = ["no word from worker 2 within 15 s; reload again"];
  for (const { orders } of played)
    expect(orders.filter(({ order }) => order === "verdict")).toEqual([{ order: "verdict", round: 1, problems }]);
});

test("pauses double up to half a minute, and begin anew after ten seconds of service", () => {
  expect([0, 1, 2, 3, 4].map(pauseAfter)).toEqual([0, 100, 200, 400, 800]);
  expect(pauseAfter(50)).toBe(30_000);
  expect([null, 0, 9_999, 10_000].map(isQuick)).toEqual([true, true, true, false]);
});

test.each<[string, number, string | undefined, number]>([
  ["exits with a code", 3, undefined, 3],
  ["is killed by a signal", 0, "SIGSEGV", 1],
])("a worker that %s while the node stops is logged, and its failure is the node's", async (_, code, signal, exit) => {
  for (const order of [
    [0, 1],
    [1, 0],
  ]) {
    const { node, played, events, serve, settled } = rig(2);
    await serve(0, 1);
    node.stop("SIGTERM");
    for (const index of order) {
      if (index === 0) played[index]!.end(code, signal);
      else played[index]!.end(0);
      await settled();
    }
    expect(await node.ended).toBe(exit);
    const cause = signal === undefined ? `"code":${code}` : `"signal":"${signal}"`;
    expect(events.filter((event) => event.startsWith("worker_lost"))).toEqual([`worker_lost {"worker":1,${cause}}`]);
    // The supervisor did not replace the worker that ended.
    expect(played).toHaveLength(2);
  }
});

test("a worker that is killed while the node stops, before it has served, is no failure", async () => {
  const { node, played, events, serve } = rig(2);
  await serve(0);
  node.stop("SIGTERM");
  expect(played.map(({ isKilled }) => isKilled)).toEqual([false, true]);
  played[0]!.end(0);
  expect(await node.ended).toBe(0);
  expect(events.some((event) => event.startsWith("worker_lost"))).toBe(false);
});
