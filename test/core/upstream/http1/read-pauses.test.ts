/**
 * The lengths of the pauses of engines' sockets: levels follow the load slowly and within bounds, and no pause is
 * longer than the level in force.
 */
import { describe, expect, test } from "bun:test";
import { type Pause, ReadPauses } from "../../../../src/core/upstream/http1/read-pauses.ts";
import { VirtualClock } from "../../admission/virtual-time.ts";

/** The read pauses of a process that uses `share` of a core. */
function pausing({ share = 0, shortest_ms = 0, longest_ms = 100 } = {}) {
  const clock = new VirtualClock();
  const load = { share, busy_ms: 0, at_ms: clock.now_ms() };
  const busy = () => {
    load.busy_ms += (clock.now_ms() - load.at_ms) * load.share;
    load.at_ms = clock.now_ms();
    return load.busy_ms;
  };
  const pauses = new ReadPauses({ shortest_ms, longest_ms }, clock, busy);
  const wants = (now: number) => {
    busy();
    load.share = now;
  };
  return { clock, pauses, wants };
}

/** The pause levels in force at the end of each second. */
async function levels({ clock, pauses }: Pick<ReturnType<typeof pausing>, "clock" | "pauses">, seconds: number) {
  const seen: number[] = [];
  for (let second = 0; second < seconds; second++) {
    await clock.advance(1000);
    seen.push(pauses.window_ms);
  }
  return seen;
}

describe("the level", () => {
  test("is 0 on a node that has room, however long", async () => {
    const one = pausing({ share: 0.79 });
    expect(await levels(one, 60)).toEqual(Array(60).fill(0));
  });

  test("rises by one step for each half second above 80 % of the core", async () => {
    const { clock, pauses } = pausing({ share: 0.9 });
    const seen: number[] = [];
    for (let at = 0; at < 5; at++) {
      await clock.advance(500);
      seen.push(pauses.window_ms);
    }
    expect(seen).toEqual([25, 50, 100, 100, 100]);
  });

  test("does not rise for bursts that are shorter", async () => {
    const one = pausing();
    for (let burst = 0; burst < 20; burst++) {
      one.wants(1);
      await one.clock.advance(250);
      one.wants(0.5);
      await one.clock.advance(250);
    }
    expect(one.pauses.window_ms).toBe(0);
  });

  test("stays between 40 and 80 %, and falls by one step for each three seconds below", async () => {
    const one = pausing({ share: 1 });
    expect(await levels(one, 2)).toEqual([50, 100]);
    one.wants(0.41);
    expect(await levels(one, 20)).toEqual(Array(20).fill(100));
    one.wants(0.39);
    expect(await levels(one, 10)).toEqual([100, 100, 50, 50, 50, 25, 25, 25, 0, 0]);
  });

  test("keeps to its bounds", async () => {
    expect(await levels(pausing({ share: 1, longest_ms: 0 }), 3)).toEqual([0, 0, 0]);
    expect(await levels(pausing({ share: 1, longest_ms: 10 }), 2)).toEqual([10, 10]);
    expect(await levels(pausing({ share: 1, longest_ms: 60 }), 2)).toEqual([50, 60]);
    const least = pausing({ share: 1, shortest_ms: 40 });
    expect(least.pauses.window_ms).toBe(40);
    expect(await levels(least, 1)).toEqual([100]);
    least.wants(0);
    expect(await levels(least, 10)).toContain(40);
    expect(least.pauses.window_ms).toBe(40);
  });

  test("no longer follows the load after the end, and no timer stays", async () => {
    const { clock, pauses } = pausing({ share: 1 });
    pauses.stop();
    await clock.advance(5000);
    expect([pauses.window_ms, clock.timers]).toEqual([0, 0]);
  });
});

describe("a pause", () => {
  const line = (clock: VirtualClock) => {
    const over: { pause: Pause; at_ms: number }[] = [];
    return { over, pauseOver: (pause: Pause) => void over.push({ pause, at_ms: clock.now_ms() }) };
  };

  test("is none at level 0", () => {
    const { clock, pauses } = pausing();
    expect(pauses.begin(line(clock))).toBeNull();
  });

  test.each([25, 50, 100])("of %d ms takes that long at most, and four fifths of it at least", async (window_ms) => {
    for (let offset_ms = 0; offset_ms < window_ms; offset_ms += 3) {
      const { clock, pauses } = pausing({ shortest_ms: window_ms });
      await clock.advance(offset_ms);
      const one = line(clock);
      const began_ms = clock.now_ms();
      expect(pauses.begin(one)).not.toBeNull();
      await clock.advance(200);
      expect(one.over).toHaveLength(1);
      const took_ms = one.over[0]!.at_ms - began_ms;
      expect(took_ms).toBeLessThanOrEqual(window_ms);
      expect(took_ms).toBeGreaterThanOrEqual(window_ms * 0.79);
    }
  });

  test("shares its timer with those that end at about the same time", async () => {
    const { clock, pauses } = pausing({ shortest_ms: 100 });
    const idle = clock.timers;
    const lines = Array.from({ length: 1000 }, () => line(clock));
    for (const [at, one] of lines.entries()) {
      if (at % 10 === 0) await clock.advance(1);
      pauses.begin(one);
    }
    expect(clock.timers - idle).toBeLessThanOrEqual(9);
    await clock.advance(100);
    expect(lines.every(({ over }) => over.length === 1)).toBe(true);
    expect(clock.timers).toBe(idle);
  });

  test("is shorter by what this process is late, and none where that is all of it; it comes back when the process is punctual", async () => {
    const { clock, pauses } = pausing({ shortest_ms: 100 });
    const [first, second, third] = [line(clock), line(clock), line(clock)];
    pauses.begin(first);
    clock.freeze(140);
    await clock.advance(0);
    const late_ms = 40;
    expect(first.over).toHaveLength(1);
    const began_ms = clock.now_ms();
    pauses.begin(second);
    await clock.advance(100);
    expect(second.over[0]!.at_ms - began_ms).toBeLessThanOrEqual(100 - late_ms + 13);
    pauses.begin(line(clock));
    clock.freeze(400);
    await clock.advance(0);
    expect(pauses.begin(third)).toBeNull();
    await clock.advance(500);
    expect(pauses.begin(third)).not.toBeNull();
  });
});
