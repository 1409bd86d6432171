/** Wires the bounds of a node, and the intervals at which the garbage of its requests is collected. */
import { descriptorLimit, lowestFreeDescriptor } from "../config/machine.ts";
import { type Bounds, bounds } from "../core/http/bounds.ts";
import type { Lifecycle } from "../core/http/frame.ts";
import { runtimeCollector } from "../core/http/garbage.ts";
import { repeating } from "../core/time/clock.ts";
import { disposable, type Settings } from "./foundation.ts";

/** The least time between two collections of small requests' garbage. */
const tidy_ms = 30_000;
/**
 * How long a message or tool of a request body stays in the item cache after its last use: at least this long, and at
 * most twice as long.
 */
const items_ms = 5 * 60_000;
/** The interval at which young objects are garbage-collected while many requests are open. */
const tick_ms = 1_000;

export function boundsOf({ limits, server }: Settings, lifecycle: Lifecycle): Bounds {
  const { trustedProxies, clientAddressHeader } = server;
  const held = { ...limits, descriptors_max: descriptorLimit(), trustedProxies, clientAddressHeader };
  const machine = { residentBytes: process.memoryUsage.rss, ...runtimeCollector, lowestFreeDescriptor };
  return bounds(held, machine, lifecycle.smallWait);
}

export function startBounds(settings: Settings, lifecycle: Lifecycle) {
  const ending = new AsyncDisposableStack();
  const made = boundsOf(settings, lifecycle);
  const tidying = repeating(async () => made.garbage.passed(lifecycle.openCount), { every: tidy_ms });
  ending.defer(() => tidying.stop());
  const ticking = repeating(async () => made.garbage.ticked(lifecycle.openCount), { every: tick_ms });
  ending.defer(() => ticking.stop());
  const aging = repeating(async () => made.items.age(), { every: items_ms });
  ending.defer(() => aging.stop());
  return disposable({ bounds: made }, ending);
}
