/**
 * The search for the most streams that a core can serve: it ends within a step of the true number, whatever that is,
 * and measures few times.
 */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { behaviourAt, type Flow, isBorne, mostBorne } from "../../bench/speed/capacity.ts";

const behaviour = behaviourAt(25);
const flowAt = (streams: number, { first = 60, gap = 90, cpu_us = 20 } = {}): Flow => ({
  ...{ streams, events_per_s: streams * 40, cpu_us, first_ms: { p50: 25, p99: first }, gap_ms: { p50: 25, p99: gap } },
});

test("a flow is borne up to 100 ms more until the first token, and up to pace + pause + 150 ms between two", () => {
  expect(isBorne(flowAt(10, { first: 120, gap: 224 }), behaviour)).toBe(true);
  expect(isBorne(flowAt(10, { first: 121 }), behaviour)).toBe(false);
  expect(isBorne(flowAt(10, { gap: 225 }), behaviour)).toBe(false);
});

test("the most that is borne is found to an eighth, from wherever it lies, in thirty flows at most", async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 8, max: 4000 }), fc.integer({ min: 3, max: 200 }), async (bears, cpu_us) => {
      const seen: number[] = [];
      const seenAt = async (streams: number) => {
        seen.push(streams);
        return flowAt(streams, { cpu_us, first: streams <= bears ? 60 : 400 });
      };
      const most = await mostBorne(seenAt, behaviour);
      expect(seen.length).toBeLessThanOrEqual(30);
      if (most === null) return expect(bears).toBeLessThan(16);
      expect(most.streams).toBeLessThanOrEqual(bears);
      // The 1 is for small counts of streams, between which the search has no further counts to try.
      expect(most.streams * 1.13 + 1).toBeGreaterThanOrEqual(bears);
    }),
  );
});

test("a flow that something else disturbed is asked once more", async () => {
  let asked = 0;
  const seenAt = async (streams: number) => flowAt(streams, { first: streams > 500 || asked++ % 2 === 0 ? 400 : 60 });
  const most = await mostBorne(seenAt, behaviour);
  expect(most!.streams).toBeGreaterThan(440);
});

test("of a target that bears nothing, nothing is said", async () => {
  expect(await mostBorne(async (streams) => flowAt(streams, { first: 9000 }), behaviour)).toBeNull();
});
