/**
 * Which requests may run at which engine, and which wait: within the limits, never idle needlessly, and no slot is
 * lost.
 */
import { expect, test } from "bun:test";
import fc from "fast-check";
import type { Route } from "../../../src/core/routing/catalog.ts";
import type { Claim } from "../../../src/core/routing/fair-queue.ts";
import { type Queues, queues, type Slot, type Waiting } from "../../../src/core/routing/queues.ts";
import { sharing } from "../../../src/core/routing/sharing.ts";
import type { EngineSlots } from "../../../src/core/store/engine-slots.ts";
import type { Clock } from "../../../src/core/time/clock.ts";
import type { Capacity } from "../../../src/core/upstream/target.ts";
import { faultOf } from "../../harness/faults.ts";

const unlimited: Capacity = {
  ...{ concurrent_max: null, tokens_in_flight_max: null, reserved_percent: 0 },
  ...{ queue_max: 1000, queue_ms_max: 30_000 },
};
const route = (name: string, capacity: Partial<Capacity>, own?: Partial<Capacity>): Route =>
  ({
    upstream: { name, url: `http://${name}/v1`, capacity: { ...unlimited, ...capacity } },
    ...{ model: name, priority: 0, weight: 1 },
    ...(own ? { capacity: { ...unlimited, ...own } } : {}),
  }) as unknown as Route;
const claim = (organizationId: string, tokens = 100): Claim => ({
  ...{ organizationId, tokens, share: { weight: 1, priority: 0 } },
});

/** The slot that the request gets now, or its wait if there is none. */
function come(at: Queues, routes: readonly Route[], one: Claim): Slot | Waiting {
  const [open] = at.open(routes, one);
  return open ? at.enter(open, one) : at.wait(routes, one);
}
const isWaiting = (one: Slot | Waiting): one is Waiting => "slot" in one;

test("never more in flight than allowed, never room that whoever is next would fit, nobody is lost", async () => {
  const anyAct = fc.record({
    organization: fc.constantFrom("a", "b", "c"),
    tokens: fc.integer({ min: 1, max: 900 }),
    act: fc.constantFrom("come", "come", "end", "leave"),
    which: fc.nat(50),
  });
  const anyCase = fc.record({
    acts: fc.array(anyAct, { maxLength: 120 }),
    reserved_percent: fc.constantFrom(0, 0, 25),
    tokens_in_flight_max: fc.constantFrom(null, 1000),
  });
  await fc.assert(
    fc.asyncProperty(anyCase, async ({ acts, reserved_percent, tokens_in_flight_max }) => {
      const capacity = { concurrent_max: 4, tokens_in_flight_max, reserved_percent };
      const routes = [route("one", capacity), route("other", capacity)];
      const at = queues(() => 0);
      const inFlight: { slot: Slot; tokens: number }[] = [];
      let waiting: { waiting: Waiting; tokens: number; isOver: boolean }[] = [];
      const settle = async () => {
        for (const one of waiting) {
          const slot = await Promise.race([one.waiting.slot, Promise.resolve("waits" as const)]);
          if (slot === "waits") continue;
          one.isOver = true;
          if (slot) inFlight.push({ slot, tokens: one.tokens });
        }
        waiting = waiting.filter(({ isOver }) => !isOver);
      };
      for (const { organization, tokens, act, which } of acts) {
        if (act === "come") {
          const come_ = come(at, routes, claim(organization, tokens));
          if (isWaiting(come_)) waiting.push({ waiting: come_, tokens, isOver: false });
          else inFlight.push({ slot: come_, tokens });
        } else if (act === "end" && inFlight.length > 0) inFlight.splice(which % inFlight.length, 1)[0]!.slot.release();
        else if (act === "leave" && waiting.length > 0) waiting[which % waiting.length]!.waiting.giveUp();
        await settle();
        for (const each of routes) {
          const there = inFlight.filter(({ slot }) => slot.route === each);
          expect(there.length).toBeLessThanOrEqual(4);
          const sum = there.reduce((total, one) => total + one.tokens, 0);
          if (tokens_in_flight_max && reserved_percent === 0 && there.length > 1) expect(sum).toBeLessThanOrEqual(1000);
          expect(at.lengthOf(each)).toBe(waiting.length);
          // If there is neither a reserve nor a limit of tokens, no request waits for an engine that has room.
          if (!tokens_in_flight_max && reserved_percent === 0 && waiting.length > 0) expect(there.length).toBe(4);
        }
      }
      while (inFlight.length > 0) {
        inFlight.shift()!.slot.release();
        await settle();
      }
      expect(waiting).toEqual([]);
    }),
    { numRuns: 200 },
  );
});

test("a request goes to whichever of its engines has room first, and waits at none after that", async () => {
  const [first, second] = [route("first", { concurrent_max: 1 }), route("second", { concurrent_max: 1 })];
  const at = queues(() => 0);
  const there = [at.enter(first, claim("a")), at.enter(second, claim("a"))];
  const waiting = at.wait([first, second], claim("a"));
  there[1]!.release();
  expect((await waiting.slot)!.route).toBe(second);
  expect([at.lengthOf(first), at.lengthOf(second)]).toEqual([0, 0]);
  there[0]!.release();
  expect(at.open([first, second], claim("a"))).toEqual([first]);
});

test("one that is larger than all the room has it to itself", async () => {
  const only = route("only", { tokens_in_flight_max: 1000 });
  const at = queues(() => 0);
  const small = at.enter(only, claim("a", 400));
  const large = at.wait([only], claim("a", 5_000));
  // There would be room for this request, but it is not its turn.
  expect(at.open([only], claim("a", 100))).toEqual([]);
  const behind = at.wait([only], claim("a", 100));
  small.release();
  const slot = await large.slot;
  expect(at.lengthOf(only)).toBe(1);
  slot!.release();
  expect((await behind.slot)!.route).toBe(only);
});

test("a route's own limit stands in place of its upstream's, and models of one upstream share its limit", () => {
  const own = route("engine", { concurrent_max: 1 }, { concurrent_max: 2 });
  const [one, other] = ["m1", "m2"].map((model) => ({ ...route("engine", { concurrent_max: 1 }), model }));
  const at = queues(() => 0);
  at.enter(one!, claim("a"));
  expect(at.open([one!, other!, own], claim("a"))).toEqual([own]);
});

test("what is reserved is for organizations that have less than that there, however many of the others wait", async () => {
  const only = route("only", { concurrent_max: 10, reserved_percent: 10 });
  const at = queues(() => 0);
  const busy = Array.from({ length: 9 }, () => at.enter(only, claim("busy")));
  expect(at.open([only], claim("busy"))).toEqual([]);
  const waits = at.wait([only], claim("busy"));
  expect(at.open([only], claim("quiet"))).toEqual([only]);
  at.enter(only, claim("quiet"));
  expect(at.open([only], claim("other"))).toEqual([]);
  const other = at.wait([only], claim("other"));
  // Both waiting organizations are new in the queue, so the request that came first is next: that of the busy one.
  busy.pop()!.release();
  expect((await waits.slot)!.route).toBe(only);
  busy.pop()!.release();
  expect((await other.slot)!.route).toBe(only);
});

test("an organization with as much running as is reserved does not take what is reserved as well", () => {
  const only = route("only", { concurrent_max: 10, reserved_percent: 10 });
  const at = queues(() => 0);
  at.enter(only, claim("small"));
  for (let count = 0; count < 8; count++) at.enter(only, claim("busy"));
  expect(at.open([only], claim("small"))).toEqual([]);
  expect(at.open([only], claim("new"))).toEqual([only]);
});

test("what is reserved is taken in turn: a request that came later does not pass one that waits for more of it", async () => {
  const only = route("only", { tokens_in_flight_max: 1000, reserved_percent: 50 });
  const at = queues(() => 0);
  const busy = at.enter(only, claim("busy", 500));
  // The organization `early` is quiet at this engine, so its request may use a part of the reserve.
  const early = at.enter(only, claim("early", 300));
  const large = at.wait([only], claim("large", 400));
  expect(at.open([only], claim("late", 100))).toEqual([]);
  early.release();
  expect((await large.slot)!.route).toBe(only);
  expect(at.open([only], claim("late", 100))).toEqual([only]);
  busy.release();
});

test("an organization may take as many places as are still free: one that has none finds one", () => {
  const only = route("only", { concurrent_max: 1, queue_max: 16 });
  const at = queues(() => 0);
  at.enter(only, claim("a"));
  let taken = 0;
  for (; faultOf(() => at.wait([only], claim("noisy"))) === null; taken++);
  expect(taken).toBe(8);
  expect(faultOf(() => at.wait([only], claim("quiet")))).toBeNull();
  expect(faultOf(() => at.wait([only], claim("noisy")))?.code).toBe("capacity_exceeded");
});

test("when to come back is what the engine's pace says, and a wait that would be too long is not begun", () => {
  let now_ms = 0;
  const only = route("only", { concurrent_max: 4, queue_ms_max: 60_000 });
  const at = queues(() => now_ms);
  const there = Array.from({ length: 4 }, () => at.enter(only, claim("a")));
  for (let count = 0; count < 64; count++)
    void at.wait([only], claim("a")).slot.then((slot) => slot && there.push(slot));
  return (async () => {
    // One request ends every two seconds.
    for (let count = 0; count < 40; count++) {
      now_ms += 2_000;
      there.shift()!.release();
      await Promise.resolve();
    }
    const told = at.full([only], claim("a"));
    expect(told.details.retryAfterSeconds).toBe(50);
    expect(faultOf(() => at.wait([only], claim("a")))).toBeNull();
    for (let count = 0; count < 5; count++) void at.wait([only], claim("a"));
    expect(faultOf(() => at.wait([only], claim("a")))).toMatchObject({
      ...{ code: "capacity_exceeded", details: { retryAfterSeconds: 60 } },
    });
    // A request of another organization would be next.
    expect(at.full([only], claim("b")).details.retryAfterSeconds).toBe(2);
    expect(faultOf(() => at.wait([only], claim("b")))).toBeNull();
  })();
});

test("a short pause of the engine refuses nobody, and an engine that ends nothing any more is full soon", async () => {
  let now_ms = 0;
  const only = route("only", { concurrent_max: 4, queue_ms_max: 60_000 });
  const at = queues(() => now_ms);
  const there = Array.from({ length: 4 }, () => at.enter(only, claim("a")));
  for (let count = 0; count < 44; count++)
    void at.wait([only], claim("a")).slot.then((slot) => slot && there.push(slot));
  for (let count = 0; count < 20; count++) {
    now_ms += 100;
    there.shift()!.release();
    await Promise.resolve();
  }
  now_ms += 10_000;
  expect(faultOf(() => at.wait([only], claim("a")))).toBeNull();
  now_ms += 20_000;
  expect(faultOf(() => at.wait([only], claim("a")))?.code).toBe("capacity_exceeded");
});

test("before the first end nobody is refused for the requests in flight, which end together", async () => {
  let now_ms = 0;
  const only = route("only", { concurrent_max: 8, queue_ms_max: 30_000 });
  const at = queues(() => now_ms);
  const there = Array.from({ length: 8 }, () => at.enter(only, claim("a")));
  for (let count = 0; count < 20; count++) void at.wait([only], claim("a"));
  now_ms += 8_000;
  // At best the eight requests end now, after 8 s, and the next ones take as long. So three times eight requests take
  // 24 s.
  expect(at.full([only], claim("a")).details.retryAfterSeconds).toBe(21);
  expect(faultOf(() => at.wait([only], claim("a")))).toBeNull();
  now_ms += 8_000;
  expect(faultOf(() => at.wait([only], claim("a")))?.code).toBe("capacity_exceeded");
  for (const slot of there) slot.release();
  expect(faultOf(() => at.wait([only], claim("a")))).toBeNull();
});

test("a limit that a reload raises or lifts counts at once", async () => {
  const at = queues(() => 0);
  const before = route("only", { concurrent_max: 1 });
  at.enter(before, claim("a"));
  const waiting = at.wait([before], claim("a"));
  const after = route("only", { concurrent_max: 3 });
  expect(at.open([after], claim("a"))).toEqual([after]);
  expect((await waiting.slot)!.route).toBe(before);
  at.enter(after, claim("a"));
  expect(at.open([after], claim("a"))).toEqual([]);
});

test("who waits may wait for an engine that is new, and waits no longer for one that is gone", async () => {
  const at = queues(() => 0);
  const [one, other, third] = ["one", "other", "third"].map((name) => route(name, { concurrent_max: 1 })) as [
    Route,
    Route,
    Route,
  ];
  const first = at.enter(one, claim("a"));
  const second = at.enter(other, claim("a"));
  const waiting = at.wait([one], claim("b"));
  waiting.renew([one, other]);
  expect([at.lengthOf(one), at.lengthOf(other)]).toEqual([1, 1]);
  second.release();
  const slot = (await waiting.slot)!;
  expect(slot.route).toBe(other);
  expect([at.lengthOf(one), at.lengthOf(other)]).toEqual([0, 0]);
  // The wait is over, so a renewal has no effect.
  waiting.renew([one, other, third]);
  expect(at.lengthOf(one)).toBe(0);

  const lost = at.wait([one], claim("b"));
  lost.renew([other]);
  expect([at.lengthOf(one), at.lengthOf(other)]).toEqual([0, 1]);
  // `third` has room at once, so the wait ends: the request chooses a route anew, and is no longer counted in any
  // queue.
  lost.renew([other, third]);
  expect(await lost.slot).toBeNull();
  expect(at.lengthOf(other)).toBe(0);
  expect(at.open([third], claim("b"))).toEqual([third]);

  const nowhere = at.wait([one], claim("b"));
  nowhere.renew([]);
  expect(await nowhere.slot).toBeNull();
  first.release();
  slot.release();
  expect(at.open([one, other], claim("b"))).toEqual([one, other]);
});

test("an engine that is gone is forgotten when nothing runs there and nobody waits", () => {
  const at = queues(() => 0);
  const one = route("one", { concurrent_max: 1 });
  const again = () => at.open([route("one", { concurrent_max: 1 })], claim("b")).length;
  const slot = at.enter(one, claim("a"));
  at.retain(new Set());
  expect(again()).toBe(0);
  slot.release();
  at.retain(new Set());
  expect(again()).toBe(1);
});

test("a request that waits for slots of a limit that the fleet shares has them asked for at once", async () => {
  let now_ms = 0;
  const timers = new Set<{ due_ms: number; run(): void }>();
  const clock: Clock = {
    now_ms: () => now_ms,
    after(delay_ms, run) {
      const timer = { due_ms: now_ms + delay_ms, run };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
  };
  const pass = async (until_ms: number) => {
    for (now_ms += 1; now_ms <= until_ms; now_ms++) {
      for (const timer of [...timers].filter(({ due_ms }) => due_ms <= now_ms)) {
        timers.delete(timer);
        timer.run();
      }
      for (let turns = 0; turns < 10; turns++) await Promise.resolve();
    }
    now_ms = until_ms;
  };
  // The store grants as many slots as are wanted.
  const store: EngineSlots = {
    exchange: async (_, { wanted }) => ({ held: wanted, target: wanted, processes: 2, isShort: false }),
    leave: async () => {},
  };
  const at = queues(clock.now_ms, sharing({ store, newName: () => "one", clock }));
  const shared = route("one", { concurrent_max: 4, isShared: true });
  expect(at.sharedOf(shared)).toEqual({ held: 0, isApart: true });
  await pass(10);
  expect(at.sharedOf(shared)).toEqual({ held: 0, isApart: false });
  const waiting = come(at, [shared], claim("a")) as Waiting;
  // The next exchange would have been after 50 ms.
  await pass(20);
  expect(at.waiting()).toBe(0);
  (await waiting.slot)!.release();
});
