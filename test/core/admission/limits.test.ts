/**
 * A node's knowledge of changed limits: the subjects for which it has received changes, and which of these changes
 * concern a running request.
 */
import { expect, test } from "bun:test";
import type { Batcher } from "../../../src/core/admission/batcher.ts";
import { HeardChanges } from "../../../src/core/admission/limit-changes.ts";
import { limitsInForce } from "../../../src/core/admission/limits-in-force.ts";
import { HeldReservation, type ReservationParts, type Settlement } from "../../../src/core/admission/reservation.ts";
import { noUsage } from "../../../src/core/inference/usage.ts";
import { type LimitStore, noLimits, type Plan } from "../../../src/core/store/plan.ts";
import { VirtualClock } from "./virtual-time.ts";

const gold: Plan = { ...noLimits, name: "gold", session: 1_000 };

/**
 * A reservation of a request that counts against these subjects, and the plans that its commands to the ledger named.
 */
function reserved(subjects: string[], changes = new HeardChanges(), edition = changes.edition) {
  const now = { plan: gold };
  const plans: Plan[] = [];
  const batcher = {
    async submit({ verb, limits }: { verb: string; limits: Plan }) {
      plans.push(limits);
      return verb === "grow" ? { answer: "granted", nanos: 1_000 } : { answer: "settled" };
    },
  } as unknown as Batcher;
  const clock = new VirtualClock();
  const parts = {
    batcher,
    clock,
    facts: {
      requestId: "req_1",
      organizationId: "org_1",
      prices: { input: 1, cachedInput: 1, cacheWrite: 1, output: 1 },
    },
    plan: gold,
    planNow: () => now.plan,
    changes,
    edition,
    subjects,
    hold: { inputNanos: 0, outputTokens: 100, outputTokens_min: 1, outputTokensCap: 100 },
    grant: { nanos: 1_000, outputTokens: 100 },
    sentAt_ms: clock.now_ms(),
    lease_ms: 60_000,
    checkpoint_ms: 10_000,
    taken: null,
  } as unknown as ReservationParts;
  return { now, plans, changes, reservation: new HeldReservation(parts) };
}

test("a hold is reviewed when the limits of somebody change in whom the request counts, and then only", async () => {
  const { reservation, changes, now, plans } = reserved(["org_1", "key_1", "team_1"]);
  expect(reservation.permits(1)).toBe(true);
  changes.hear(["key_2", "team_2", "org_2"]);
  changes.hear([]);
  expect(reservation.permits(1)).toBe(true);
  for (const subject of ["key_1", "team_1", "org_1", "key_1"]) {
    changes.hear([subject, "key_2"]);
    expect(await reservation.permits(1)).toBe(true);
    expect(reservation.permits(1)).toBe(true);
  }
  expect(plans).toHaveLength(4);
  now.plan = { ...gold };
  expect(reservation.permits(1)).toBeInstanceOf(Promise);
  expect(plans.at(-1)).toBe(now.plan);
});

test("what changed between the sending of an admission and its grant is not missed", () => {
  const changes = new HeardChanges();
  const { edition } = changes;
  changes.hear(["team_1"]);
  const { reservation } = reserved(["org_1", "key_1", "team_1"], changes, edition);
  expect(reservation.permits(1)).toBeInstanceOf(Promise);
});

test("a settlement names the last plan that was known, where reading it fails", async () => {
  const { reservation, now, plans } = reserved(["org_1"]);
  now.plan = { ...gold };
  const last = now.plan;
  await reservation.permits(1);
  Object.defineProperty(now, "plan", {
    get() {
      throw new Error("a defect");
    },
  });
  await reservation.settle({ usage: noUsage, nanos: 0 } as Settlement);
  expect(plans.at(-1)).toBe(last);
});

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
