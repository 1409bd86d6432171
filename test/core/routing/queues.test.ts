/**
 * Which requests may run at which engine, and which have to wait: within the limits, without needless idling, and no
 * slot is lost.
 */
import { expect, test } from "bun:test";
import type { Route } from "../../../src/core/routing/catalog.ts";
import type { Claim } from "../../../src/core/routing/fair-queue.ts";
import { queues } from "../../../src/core/routing/queues.ts";
import type { EngineSlots } from "../../../src/core/store/engine-slots.ts";
import type { Capacity } from "../../../src/core/upstream/target.ts";
import { sharing } from "../../../src/features/sharing/sharing.ts";
import { faultOf } from "../../harness/faults.ts";
import { VirtualClock } from "../admission/virtual-time.ts";
import { capacityOf, routeTo, upstreamOf } from "./models.ts";

const route = (name: string, capacity: Partial<Capacity>, own?: Partial<Capacity>): Route =>
  routeTo(upstreamOf(`http://${name}/v1`, { name, capacity: capacityOf(capacity) }), {
    ...{ model: name, ...(own ? { capacity: capacityOf(own) } : {}) },
  });
const claim = (organizationId: string, tokens = 100): Claim => ({
  ...{ organizationId, tokens, share: { weight: 1, priority: 0 } },
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

test("one that gives up leaves the queue, and whoever is behind it is served", async () => {
  const only = route("only", { concurrent_max: 1 });
  const at = queues(() => 0);
  const running = at.enter(only, claim("a"));
  const [gone, behind] = [at.wait([only], claim("b")), at.wait([only], claim("c"))];
  gone.giveUp();
  expect([await gone.slot, at.lengthOf(only)]).toEqual([null, 1]);
  running.release();
  expect((await behind.slot)!.route).toBe(only);
});

test("a slow spell does not close the queue: when it is over, requests wait again", async () => {
  let now_ms = 0;
  const only = route("only", { concurrent_max: 1, queue_ms_max: 30_000 });
  const at = queues(() => now_ms);
  const first = at.enter(only, claim("a"));
  const waiting = at.wait([only], claim("b"));
  now_ms = 50_000;
  first.release();
  const slow = (await waiting.slot)!;
  now_ms = 52_000;
  slow.release();
  for (const organization of ["c", "d", "e"]) {
    const running = at.enter(only, claim("a"));
    const next = at.wait([only], claim(organization));
    now_ms += 1_000;
    running.release();
    (await next.slot)!.release();
  }
  const running = at.enter(only, claim("a"));
  at.wait([only], claim("f"));
  expect(faultOf(() => at.wait([only], claim("g")))?.details.retryAfterSeconds ?? 0).toBeLessThan(60);
  running.release();
});

test("one that is larger than all the room has it to itself", async () => {
  const only = route("only", { tokens_in_flight_max: 1000 });
  const at = queues(() => 0);
  const small = at.enter(only, claim("a", 400));
  const large = at.wait([only], claim("a", 5_000));
  // The engine has room for this request, but another one is next.
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
  // Both waiting organizations are new in the queue, so the request that came first is next: the one of the busy
  // organization.
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

test("when to come back is what the engine's pace says, and a wait that would be too long is not begun", async () => {
  let now_ms = 0;
  const only = route("only", { concurrent_max: 4, queue_ms_max: 60_000 });
  const at = queues(() => now_ms);
  const there = Array.from({ length: 4 }, () => at.enter(only, claim("a")));
  for (let count = 0; count < 64; count++)
    void at.wait([only], claim("a")).slot.then((slot) => slot && there.push(slot));
  // One of the running requests ends every two seconds.
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
  // In the best case the eight requests end now, after 8 s, and the next ones take as long. So the queue's three rounds
  // of eight requests take 24 s.
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
  // The request no longer waits, so a renewal of its routes has no effect.
  waiting.renew([one, other, third]);
  expect(at.lengthOf(one)).toBe(0);

  const lost = at.wait([one], claim("b"));
  lost.renew([other]);
  expect([at.lengthOf(one), at.lengthOf(other)]).toEqual([0, 1]);
  // `third` has room at once, so the wait ends without a slot: the request chooses a route anew, and is no longer
  // counted in any queue.
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
  const clock = new VirtualClock();
  // The store grants as many slots as a process wants.
  const store: EngineSlots = {
    exchange: async (_, { wanted }) => ({ held: wanted, target: wanted, processes: 2, isShort: false }),
    leave: async () => {},
  };
  const at = queues(() => clock.now_ms(), sharing({ store, newName: () => "one", clock }));
  const shared = route("one", { concurrent_max: 4, isShared: true });
  expect(at.sharedOf(shared)).toEqual({ held: 0, isApart: true });
  await clock.advance(10);
  expect(at.sharedOf(shared)).toEqual({ held: 0, isApart: false });
  expect(at.open([shared], claim("a"))).toEqual([]);
  const waiting = at.wait([shared], claim("a"));
  // The waiting request caused an exchange with the store at once; the next regular one is only after 50 ms.
  await clock.advance(10);
  expect(at.waiting()).toBe(0);
  (await waiting.slot)!.release();
});
