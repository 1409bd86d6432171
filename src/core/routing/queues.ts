/**
 * Decides which request gets a slot at which engine now, and which waits for one. A request waits for all engines that
 * could answer it, and goes to the first that has room. Only the requests of this process are counted; a limit that the
 * fleet shares is divided among its processes (src/features/sharing): docs/routing.md, When engines are full.
 */

import { Fault } from "../inference/fault.ts";
import type { Capacity } from "../upstream/target.ts";
import type { Route } from "./catalog.ts";
import { engineIn, engineOf, identityOf } from "./choose.ts";
import type { Claim } from "./fair-queue.ts";
import { type Load, Slots } from "./slots.ts";

export interface Slot {
  route: Route;
  /** Gives the slot back. Called once, when the request is over. */
  release(): void;
}

export interface Waiting {
  /** Resolves with a slot; null if the request was given up first. */
  slot: Promise<Slot | null>;
  /** Makes the request wait for these routes from now on, and for no others. */
  renew(routes: readonly Route[]): void;
  giveUp(): void;
}

export interface Queues {
  /** Returns those of the routes that have room for the request. */
  open(routes: readonly Route[], claim: Claim): readonly Route[];
  /** Takes a slot at a route that `open` returned. */
  enter(route: Route, claim: Claim): Slot;
  /**
   * Queues the request. Throws `capacity_exceeded` if no more may wait. Call it only if none of the routes has room.
   */
  wait(routes: readonly Route[], claim: Claim): Waiting;
  /** The fault of a request that could not wait, or waited too long. */
  full(routes: readonly Route[], claim: Claim): Fault;
  /** How long the request may wait for these routes. */
  patience_ms(routes: readonly Route[]): number;
  lengthOf(route: Route): number;
  /** The most requests that this process may have in flight at the route's engine now; null: no limit. */
  mostOf(route: Route): number | null;
  /**
   * The number of slots that this process holds, if the fleet shares the engine's limit; else null. `isApart`: the
   * store through which the fleet shares the limit does not answer.
   */
  sharedOf(route: Route): { held: number; isApart: boolean } | null;
  waiting(): number;
  /** Forgets all engines but these. */
  retain(engines: ReadonlySet<string>): void;
}

/** The longest `Retry-After` of a refusal because the engines are full. */
const retry_seconds_max = 60;

/** Divides the limit of an engine among the processes of the fleet. */
export interface Sharing {
  /** Begins to share the limit of these slots with the fleet, under the identity of their engine. */
  join(engine: string, slots: Slots): void;
  leave(engine: string): Promise<void>;
}

/** The queues. `sharing` null: this process is the whole fleet. */
export function queues(now_ms: () => number, sharing: Sharing | null = null): Queues {
  const known = new Map<string, Slots>();
  const of = new WeakMap<Route, Slots>();
  let waiting = 0;

  /**
   * The slots of the route's engine; null if it has no capacity. A reload makes new route objects, and may change their
   * capacity.
   */
  function slotsOf(route: Route): Slots | null {
    const capacity = capacityOf(route);
    if (!capacity) return null;
    const at = of.get(route);
    if (at) return at;
    const identity = queueOf(route);
    const slots = known.get(identity) ?? new Slots(capacity);
    slots.capacity = capacity;
    if (capacity.isShared) sharing?.join(identity, slots);
    else if (slots.isShared) {
      slots.share(null);
      void sharing?.leave(identity);
    }
    known.set(identity, slots);
    of.set(route, slots);
    slots.serve();
    return slots;
  }

  const withRoom = (routes: readonly Route[], claim: Claim) =>
    routes.filter((route) => slotsOf(route)?.roomFor(claim) !== null);
  const allSlots = (routes: readonly Route[]) => routes.flatMap((route) => slotsOf(route) ?? []);

  function full(routes: readonly Route[], claim: Claim): Fault {
    const waits_ms = allSlots(routes).map((slots) => slots.wait_ms(claim, now_ms()) ?? 0);
    const seconds = Math.ceil(Math.min(...waits_ms) / 1000);
    const message = "The model is at capacity, and too many requests wait for it. Please try again later.";
    const retryAfterSeconds = Math.min(retry_seconds_max, Math.max(1, seconds));
    return new Fault("capacity_exceeded", message, { retryAfterSeconds });
  }

  return {
    open: (routes, claim) => {
      return routes.some(capacityOf) ? withRoom(routes, claim) : routes;
    },
    enter(route, claim) {
      const slots = slotsOf(route);
      const room = slots?.roomFor(claim);
      if (!slots || !room) return { route, release() {} };
      slots.begin(claim, room);
      return { route, release: () => slots.end(claim, room, now_ms()) };
    },
    wait(routes, claim) {
      const open = routes.filter((route) => mayWait(slotsOf(route)!, claim, now_ms()));
      if (open.length === 0) throw full(routes, claim);
      const { promise, resolve } = Promise.withResolvers<Slot | null>();
      waiting += 1;
      void promise.then(() => {
        waiting -= 1;
      });
      const spots = new Map<Slots, { route: Route; leave(): void }>();
      const leaveAll = (but?: Slots) => {
        for (const [slots, { leave }] of spots) if (slots !== but) leave();
        spots.clear();
      };
      const { organizationId, tokens, share } = claim;
      const queued = {
        organizationId,
        tokens,
        share,
        served(from: Slots, room: Load) {
          const { route } = spots.get(from)!;
          leaveAll(from);
          resolve({ route, release: () => from.end(claim, room, now_ms()) });
        },
      };
      const stand = (route: Route) => {
        const slots = slotsOf(route)!;
        if (!spots.has(slots)) spots.set(slots, { route, leave: slots.wait(queued, now_ms()) });
      };
      for (const route of open) stand(route);
      // The new request may go ahead of the waiting requests, and fit into capacity that was too small for the request
      // that was next.
      for (const slots of [...spots.keys()]) if (spots.has(slots)) slots.serve();
      const giveUp = () => {
        leaveAll();
        resolve(null);
      };
      const renew = (now: readonly Route[]) => {
        if (spots.size === 0) return;
        const left = new Set(now.map(slotsOf));
        for (const [slots, { leave }] of [...spots]) {
          if (left.has(slots)) continue;
          spots.delete(slots);
          leave();
        }
        const added = now.filter((route) => !spots.has(slotsOf(route)!));
        // The request gives up waiting, and chooses anew, if none of its engines is left or if a new one has a free
        // slot.
        if (added.some((route) => slotsOf(route)?.roomFor(claim) !== null)) return giveUp();
        for (const route of added) if (mayWait(slotsOf(route)!, claim, now_ms())) stand(route);
        if (spots.size === 0) giveUp();
      };
      return { slot: promise, renew, giveUp };
    },
    full,
    patience_ms: (routes) => Math.max(0, ...allSlots(routes).map(({ capacity }) => capacity.queue_ms_max)),
    lengthOf: (route) => slotsOf(route)?.waiting ?? 0,
    mostOf: (route) => slotsOf(route)?.requests_max ?? null,
    sharedOf(route) {
      const slots = slotsOf(route);
      if (!slots?.isShared) return null;
      return { held: slots.requests_max ?? 0, isApart: slots.isApart };
    },
    waiting: () => waiting,
    retain(engines) {
      for (const [identity, slots] of known)
        if (slots.isIdle && !engines.has(engineIn(identity))) {
          known.delete(identity);
          void sharing?.leave(identity);
        }
    },
  };
}

/** The key of a route's queue: routes of one engine share a queue, unless a route has a capacity of its own. */
export function queueOf(route: Route): string {
  return route.capacity ? identityOf(route) : engineOf(route.upstream);
}

/** The route's capacity, or its upstream's; null if nothing limits it. */
function capacityOf(route: Route): Capacity | null {
  const capacity = route.capacity ?? route.upstream.capacity;
  if (!capacity || (capacity.concurrent_max === null && capacity.tokens_in_flight_max === null)) return null;
  return capacity;
}

/**
 * Whether the request may wait at these slots. A request that would wait too long is refused at once, with the time
 * after which the client may try again. The first in an empty queue may always wait, because the pace of the slots is
 * only measured while a request waits: after a slow phase, the queue would otherwise stay closed.
 */
function mayWait(slots: Slots, claim: Claim, now_ms: number): boolean {
  const expected_ms = slots.waiting === 0 ? 0 : (slots.wait_ms(claim, now_ms) ?? 0);
  return slots.mayWait(claim) && expected_ms <= slots.capacity.queue_ms_max;
}
