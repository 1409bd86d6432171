/**
 * The wait before a refusal for which nothing was looked up: a client that hammers with made-up keys gets one answer in
 * a second or two on each connection, instead of thousands. Waits are random, so that a thousand refusals do not come
 * back at one moment.
 */
import type { Signal } from "../time/cancellation.ts";

export interface Slowness {
  /**
   * Resolves with false at once if too many requests wait already: then the connection is better closed. The signal
   * ends the wait early.
   */
  wait(signal: Signal): Promise<boolean>;
}

export const slownessLimits = { waiting_max: 2000, shortest_ms: 1000, longest_ms: 3000 };

export function slowness(limits: typeof slownessLimits, random: () => number): Slowness {
  let waiting = 0;
  return {
    async wait(signal) {
      if (signal.aborted || waiting >= limits.waiting_max) return false;
      waiting++;
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, limits.shortest_ms + random() * (limits.longest_ms - limits.shortest_ms));
      const listening = signal.listen(() => resolve());
      await promise;
      clearTimeout(timer);
      listening.stop();
      waiting--;
      return !signal.aborted;
    },
  };
}
