/** A node's knowledge of changed limits: the subjects for which it has received changes. */
import { expect, test } from "bun:test";
import { HeardChanges, limitsInForce } from "../../../src/core/admission/limits-in-force.ts";
import { type LimitStore, noLimits, type Plan } from "../../../src/core/store/plan.ts";
import { VirtualClock } from "./virtual-time.ts";

const gold: Plan = { ...noLimits, name: "gold", session: 1_000 };

test("of whom nothing is kept any more, and where nobody is named, anybody's may have changed", () => {
  const changes = new HeardChanges();
  const first = changes.edition;
  changes.hear(null);
  expect(changes.concern(["key_1"], first)).toBe(true);
  const since = changes.edition;
  changes.hear(["key_1"]);
  for (let part = 0; part < 12; part++) changes.hear(Array.from({ length: 1_000 }, (_, at) => `key_of_${part}_${at}`));
  expect(changes.concern(["key_1"], since)).toBe(true);
  expect(changes.concern(["key_of_11_5"], changes.edition)).toBe(false);
  expect(changes.concern(["key_1"], changes.edition)).toBe(false);
});

/** A store of limits whose messages may be lost, and which may be unreachable. */
function office() {
  const state = { plans: [gold], named: [] as string[][], nextEnd_ms: null as number | null, isAway: false, reads: 0 };
  let tell = () => {};
  const store: LimitStore = {
    inForce: async () => state.plans,
    async changes(since) {
      state.reads += 1;
      await Promise.resolve();
      if (state.isAway) throw new Error("away");
      const number = state.named.length;
      return {
        number,
        at: new Date(0),
        nextEnd_ms: state.nextEnd_ms,
        subjects: state.named.slice(since ?? number).flat(),
      };
    },
    listen: async (changed) => {
      tell = changed;
      return async () => {};
    },
  };
  return { state, store, tell: () => tell() };
}

test("a change is heard by its message at once, and within a second where that is lost or the store was away", async () => {
  const { state, store, tell } = office();
  const clock = new VirtualClock();
  const failures: unknown[] = [];
  const node = await limitsInForce({ store, failed: (cause) => void failures.push(cause), clock });
  const heard = (subject: string) => node.changes.concern([subject], 0);
  state.named.push(["key_1"]);
  tell();
  await clock.advance(1);
  expect(heard("key_1")).toBe(true);
  state.named.push(["key_2"]);
  await clock.advance(1_000);
  expect(heard("key_2")).toBe(true);
  state.isAway = true;
  state.named.push(["key_3"]);
  await clock.advance(1_000);
  expect([heard("key_3"), failures.length]).toEqual([false, 1]);
  state.isAway = false;
  await clock.advance(1_000);
  expect(heard("key_3")).toBe(true);
  await node.stop();
});

test("a thousand messages at once are read twice: what was under way, and all that came meanwhile", async () => {
  const { state, store, tell } = office();
  const clock = new VirtualClock();
  const node = await limitsInForce({ store, failed() {}, clock });
  const before = state.reads;
  for (let at = 0; at < 1_000; at++) {
    state.named.push([`key_${at}`]);
    tell();
  }
  await clock.advance(1);
  expect(state.reads - before).toBeLessThanOrEqual(2);
  expect(node.changes.concern(["key_999"], 0)).toBe(true);
  await node.stop();
});

test("a raise that ends is read when it ends, and not a second later", async () => {
  const { state, store } = office();
  const clock = new VirtualClock();
  state.nextEnd_ms = 300;
  const inForce = await limitsInForce({ store, failed: () => {}, clock });
  const { edition } = inForce.changes;
  await clock.advance(299);
  state.nextEnd_ms = null;
  state.named.push(["key_1"]);
  await clock.advance(2);
  expect(inForce.changes.concern(["key_1"], edition)).toBe(true);
  await inForce.stop();
});
