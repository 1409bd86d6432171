/**
 * Random loads on engines with limits, priorities and a reserve: no slot stays idle while a request that may have it is
 * waiting, and no request is lost.
 */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { Fault } from "../../../src/core/inference/fault.ts";
import type { Route } from "../../../src/core/routing/catalog.ts";
import type { Claim } from "../../../src/core/routing/fair-queue.ts";
import { queues, type Slot, type Waiting } from "../../../src/core/routing/queues.ts";
import { seed, times } from "../../harness/depth.ts";
import { capacityOf, routeTo, upstreamOf } from "./models.ts";

const anyCapacity = fc.record({
  concurrent_max: fc.constantFrom(null, 1, 3, 8),
  tokens_in_flight_max: fc.constantFrom(null, 1000, 4000),
  reserved_percent: fc.constantFrom(0, 10, 25, 50),
  queue_max: fc.constantFrom(2, 100),
  queue_ms_max: fc.constant(30_000),
});
const act = fc.record({
  // `fails`: the request leaves its engine at once. `late`: a waiting request gives up after a slot was found for it,
  // but before it learns of the slot.
  kind: fc.constantFrom("comes", "comes", "comes", "ends", "fails", "gives up", "late"),
  organization: fc.nat(4),
  tokens: fc.integer({ min: 1, max: 2500 }),
  engines: fc.constantFrom([0], [1], [0, 1], [1, 2], [0, 1, 2]),
  which: fc.nat(1000),
  ms: fc.integer({ min: 0, max: 400 }),
});
const shares = [
  { weight: 1, priority: 0 },
  { weight: 4, priority: 0 },
  { weight: 1, priority: 1 },
  { weight: 2, priority: 1 },
  { weight: 1, priority: 2 },
];

interface Guest {
  claim: Claim;
  routes: readonly Route[];
  waiting: Waiting | null;
  slot: Slot | null;
}

test("whoever is next is served as soon as there is room, and when all have left everything is free", async () => {
  const cases = fc.record({
    capacities: fc.tuple(anyCapacity, anyCapacity, anyCapacity),
    acts: fc.array(act, { maxLength: 150 }),
  });
  await fc.assert(
    fc.asyncProperty(cases, async ({ capacities, acts }) => {
      let now_ms = 0;
      const at = queues(() => now_ms);
      const routes = capacities.map((capacity, n) => {
        return routeTo(upstreamOf(`http://engine-${n}/v1`, { name: `engine-${n}`, capacity }));
      });
      const guests = new Set<Guest>();
      const waiters = () => [...guests].filter(({ waiting }) => waiting);
      const running = () => [...guests].filter(({ slot }) => slot);
      const settle = async () => {
        for (const guest of waiters()) {
          const slot = await Promise.race([guest.waiting!.slot, Promise.resolve("waits" as const)]);
          if (slot === "waits") continue;
          guest.waiting = null;
          guest.slot = slot;
          if (!slot) guests.delete(guest);
        }
      };
      const leaves = (guest: Guest) => {
        guest.slot!.release();
        guests.delete(guest);
      };
      const comes = ({ organization, tokens, engines }: (typeof acts)[number]) => {
        const claim = { organizationId: `org-${organization}`, tokens, share: shares[organization]! };
        const some = engines.map((n) => routes[n]!);
        const guest: Guest = { claim, routes: some, waiting: null, slot: null };
        const [open] = at.open(some, claim);
        try {
          if (open) guest.slot = at.enter(open, claim);
          else guest.waiting = at.wait(some, claim);
          guests.add(guest);
          return guest;
        } catch (thrown) {
          if (!(thrown instanceof Fault)) throw thrown;
          return null;
        }
      };
      for (const one of acts) {
        now_ms += one.ms;
        const of = (some: Guest[]) => some[one.which % some.length];
        const [runs, waits] = [of(running()), of(waiters())];
        if (one.kind === "comes") comes(one);
        if (one.kind === "fails") {
          const guest = comes(one);
          if (guest?.slot) leaves(guest);
        }
        if (one.kind === "ends" && runs) leaves(runs);
        if (one.kind === "gives up") waits?.waiting?.giveUp();
        if (one.kind === "late" && runs && waits) {
          leaves(runs);
          waits.waiting!.giveUp();
          const slot = await waits.waiting!.slot;
          slot?.release();
          guests.delete(waits);
        }
        await settle();
        for (const [n, route] of routes.entries()) {
          const there = running().filter(({ slot }) => slot!.route === route);
          // No request waits for an engine that serves nothing, whatever the engine's reserve and however large the
          // requests are.
          if (there.length === 0) expect(at.lengthOf(route)).toBe(0);
          const { concurrent_max, tokens_in_flight_max, reserved_percent } = capacities[n]!;
          if (concurrent_max !== null) expect(there.length).toBeLessThanOrEqual(concurrent_max);
          const tokens = there.reduce((sum, { claim }) => sum + claim.tokens, 0);
          if (tokens_in_flight_max !== null && reserved_percent === 0 && there.length > 1)
            expect(tokens).toBeLessThanOrEqual(tokens_in_flight_max);
          // The slots reserved for quiet organizations may stay free, but no others.
          if (concurrent_max !== null && tokens_in_flight_max === null && at.lengthOf(route) > 0) {
            const kept = Math.min(Math.ceil((concurrent_max * reserved_percent) / 100), concurrent_max - 1);
            expect(there.length).toBeGreaterThanOrEqual(concurrent_max - kept);
          }
          // If there is room for every waiting request, none waits.
          if (
            tokens_in_flight_max !== null &&
            concurrent_max === null &&
            reserved_percent === 0 &&
            at.lengthOf(route) > 0
          ) {
            const largest = Math.max(
              ...waiters()
                .filter((guest) => guest.routes.includes(route))
                .map((guest) => guest.claim.tokens),
            );
            expect(tokens_in_flight_max - tokens).toBeLessThan(largest);
          }
        }
      }
      while (running().length > 0) {
        leaves(running()[0]!);
        await settle();
      }
      expect(waiters()).toEqual([]);
      // All slots are free again: as many requests can run as at the beginning.
      const fresh = queues(() => now_ms);
      for (const route of routes) {
        const fills = (some: typeof at) => {
          let count = 0;
          const claim = (n: number) => ({ organizationId: `new-${n}`, tokens: 100, share: shares[0]! });
          for (; count < 50 && some.open([route], claim(count)).length > 0; count++) some.enter(route, claim(count));
          return count;
        };
        expect(fills(at)).toBe(fills(fresh));
      }
    }),
    { seed, numRuns: times(400, 20_000) },
  );
});

test("one that goes before a large one that waits, and fits, does not wait for it", async () => {
  const only = routeTo(upstreamOf("http://only/v1", { capacity: capacityOf({ tokens_in_flight_max: 1000 }) }));
  const at = queues(() => 0);
  const claim = (organizationId: string, tokens: number, priority: number) => ({
    ...{ organizationId, tokens, share: { weight: 1, priority } },
  });
  const first = at.enter(only, claim("a", 600, 1));
  const large = at.wait([only], claim("b", 900, 1));
  expect(at.open([only], claim("c", 100, 0))).toEqual([]);
  const small = await Promise.race([at.wait([only], claim("c", 100, 0)).slot, Promise.resolve("waits" as const)]);
  expect(small).toMatchObject({ route: only });
  first.release();
  (small as Slot).release();
  expect((await large.slot)!.route).toBe(only);
});
