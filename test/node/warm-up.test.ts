/**
 * The times at which a node warms up: never longer than the setting allows, and only in idle moments while it serves.
 */
import { describe, expect, test } from "bun:test";
import { type WarmUpParts, warmUp, warmUpInIdleMoments } from "../../src/node/warm-up.ts";
import { busyness } from "../harness/busyness.ts";
import { until } from "../harness/until.ts";

/** A fake node that responds to each request immediately. */
function rig({
  warm_up_ms = 10_000,
  serves = async () => {},
}: {
  warm_up_ms?: number;
  serves?: () => Promise<void>;
} = {}) {
  const stop = new AbortController();
  const seen = { nodes: 0, open: 0, requests: 0, events: [] as string[] };
  const parts: WarmUpParts = {
    warm_up_ms,
    start() {
      seen.nodes += 1;
      seen.open += 1;
      return {
        async serve({ requests, goesOn }) {
          await serves();
          let answered = 0;
          for (; answered < requests && goesOn(); answered++) seen.requests += 1;
          return answered;
        },
        async [Symbol.asyncDispose]() {
          seen.open -= 1;
        },
      };
    },
    log: { event: (level, event) => void seen.events.push(`${level} ${event}`) },
    stopped: stop.signal,
  };
  return { parts, seen, stop: () => stop.abort() };
}

const hangs = () => new Promise<void>(() => {});

describe("before a node is ready", () => {
  test("it warms up and says so; with 0 it does not", async () => {
    const { parts, seen } = rig();
    await warmUp(parts);
    expect(seen).toMatchObject({ nodes: 1, open: 0, requests: 1000, events: ["info warmed_up"] });
    const cold = rig({ warm_up_ms: 0 });
    await warmUp(cold.parts);
    await warmUpInIdleMoments(cold.parts, () => true);
    expect(cold.seen).toMatchObject({ nodes: 0, requests: 0, events: [] });
  });

  test("it waits no longer than its limit, whatever hangs", async () => {
    const { parts, seen } = rig({ warm_up_ms: 100, serves: hangs });
    const began_ms = performance.now();
    await warmUp(parts);
    expect(performance.now() - began_ms).toBeLessThan(5000 * busyness());
    expect(seen.events).toEqual(["info warmed_up"]);
  });

  test("it ends at once when the node is to stop", async () => {
    const { parts, seen, stop } = rig({ serves: hangs });
    const warming = warmUp(parts);
    stop();
    await warming;
    expect(seen.events).toEqual([]);
  });

  test("a failure is one warning", async () => {
    const { parts, seen } = rig({ serves: () => Promise.reject(new Error("on purpose")) });
    await warmUp(parts);
    expect(seen).toMatchObject({ open: 0, events: ["warn warm_up_failed"] });
  });
});

describe("in idle moments", () => {
  test("it does nothing while the node has requests, stops when one comes, and goes on later", async () => {
    let isIdle = false;
    /** Numbers of warm-up requests after each of which a client's request arrives. */
    const stops = [40, 64];
    const { parts, seen } = rig({
      async serves() {
        if (seen.requests < (stops[0] ?? Number.POSITIVE_INFINITY)) return;
        stops.shift();
        isIdle = false;
      },
    });
    const looks = { count: 0 };
    const warming = warmUpInIdleMoments(parts, () => {
      looks.count += 1;
      return isIdle;
    });
    await until(() => looks.count > 3, 10_000, "it to look whether the node is idle");
    expect(seen.nodes).toBe(0);
    isIdle = true;
    await until(() => seen.requests === 40 && !isIdle && seen.open === 0, 30_000, "the request to stop it");
    const then = looks.count;
    await until(() => looks.count > then + 3, 10_000, "it to look again");
    expect(seen.requests).toBe(40);
    isIdle = true;
    await until(() => seen.requests === 64 && !isIdle && seen.open === 0, 30_000, "it to go on, and to stop again");
    expect(seen.nodes).toBeGreaterThan(1);
    expect(seen.events).toEqual([]);
    isIdle = true;
    await warming;
    expect(seen).toMatchObject({ open: 0, events: ["info warmed_up"] });
  }, 60_000);

  test("it ends when the node is to stop, and when something fails", async () => {
    const { parts, seen, stop } = rig();
    const warming = warmUpInIdleMoments(parts, () => true);
    await until(() => seen.requests > 0, 10_000, "it to begin");
    stop();
    await warming;
    expect(seen).toMatchObject({ open: 0, events: [] });
    const failing = rig({ serves: () => Promise.reject(new Error("on purpose")) });
    await warmUpInIdleMoments(failing.parts, () => true);
    expect(failing.seen).toMatchObject({ open: 0, events: ["warn warm_up_failed"] });
  }, 30_000);
});
