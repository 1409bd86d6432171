/**
 * A quiet organization next to one with 32 times its load, at a full engine: the time until its answers begin, compared
 * with the time when it is alone. On a virtual clock; `bun bench/fairness.ts` does the same over real sockets.
 */
import { expect, test } from "bun:test";
import { queues, type Slot } from "../../../src/core/routing/queues.ts";
import { chanceOf } from "../../faults/chance.ts";
import { capacityOf, routeTo, upstreamOf } from "./models.ts";

const slots = 32;
const length_ms = 600_000;
const quiet_per_s = 1;
const noisy_per_s = 32;
/**
 * The number of the noisy organization's clients, each of which waits for its answer before it sends the next request.
 */
const noisy_clients = 128;

interface Event {
  at_ms: number;
  act(): void;
}

/** The waits for an answer's first part, in milliseconds, and the share of the engine that was used. */
async function simulated(seed: number, isNoisy: boolean, reserved_percent: number, isFair = true) {
  const random = chanceOf(seed);
  const capacity = capacityOf({ concurrent_max: slots, reserved_percent, queue_ms_max: 60_000 });
  const route = routeTo(upstreamOf("http://engine/v1", { capacity }));
  const events: Event[] = [];
  let now_ms = 0;
  const at = queues(() => now_ms);
  const after = (wait_ms: number, act: () => void) => {
    const at_ms = now_ms + wait_ms;
    const index = events.findLastIndex((event) => event.at_ms <= at_ms);
    events.splice(index + 1, 0, { at_ms, act });
  };
  const firsts_ms: number[] = [];
  let busy_ms = 0;
  let noisy = 0;
  const ask = (organizationId: string, over: () => void) => {
    const claim = { organizationId: isFair ? organizationId : "all", tokens: 2_000, share: { weight: 1, priority: 0 } };
    const asked_ms = now_ms;
    const [prefill_ms, decode_ms] = [300 + 200 * random.next(), 400 + 800 * random.next()];
    const served = (slot: Slot) => {
      if (organizationId === "quiet") firsts_ms.push(now_ms - asked_ms + prefill_ms);
      busy_ms += prefill_ms + decode_ms;
      after(prefill_ms + decode_ms, () => {
        slot.release();
        over();
      });
    };
    if (at.open([route], claim).length > 0) served(at.enter(route, claim));
    else void at.wait([route], claim).slot.then((slot) => served(slot!));
  };
  const arrivals = (per_s: number, arrive: () => void) => {
    const next = () =>
      after((-Math.log(1 - random.next()) * 1000) / per_s, () => {
        arrive();
        next();
      });
    next();
  };
  arrivals(quiet_per_s, () => ask("quiet", () => {}));
  if (isNoisy)
    arrivals(noisy_per_s, () => {
      if (noisy >= noisy_clients) return;
      noisy += 1;
      ask("noisy", () => void noisy--);
    });
  while (now_ms < length_ms) {
    const event = events.shift()!;
    now_ms = event.at_ms;
    event.act();
    await Promise.resolve();
    await Promise.resolve();
  }
  return { p50_ms: quantile(firsts_ms, 0.5), p99_ms: quantile(firsts_ms, 0.99), used: busy_ms / length_ms / slots };
}

function quantile(values: readonly number[], share: number): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length * share)]!;
}

test("a quiet organization's p99 of the first part is at most 1.15 times what it is alone", async () => {
  for (const seed of [1, 2, 3]) {
    const alone = await simulated(seed, false, 12);
    const beside = await simulated(seed, true, 12);
    const unreserved = await simulated(seed, true, 0);
    const unfair = await simulated(seed, true, 0, false);
    expect(beside.p99_ms).toBeLessThanOrEqual(1.15 * alone.p99_ms);
    // Without a reserve the quiet organization is still next in the queue, but the engine has no free slot for it.
    expect(unreserved.p50_ms).toBeLessThanOrEqual(1.25 * alone.p50_ms);
    expect(unfair.p50_ms).toBeGreaterThan(5 * alone.p50_ms);
    expect(unreserved.used).toBeGreaterThan(0.98);
    expect(beside.used).toBeGreaterThan(0.85);
  }
});
