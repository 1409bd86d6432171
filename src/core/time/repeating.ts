/** Runs work at intervals, never twice at a time. It keeps no process alive. */
import { alignedClock } from "./aligned.ts";
import type { Clock } from "./clock.ts";

export interface Repeating {
  /** Stops. Resolves when no run is under way. */
  stop(): Promise<void>;
}

/**
 * `work` never rejects. The wait begins when it has ended; the first wait may be different. `every` may be asked for each
 * time. Work that needs its exact instant brings a clock.
 */
export function repeating(
  work: () => Promise<void>,
  times_ms: { first?: number; every: number | (() => number) },
  clock: Pick<Clock, "after"> = alignedClock(),
): Repeating {
  const { every } = times_ms;
  const wait_ms = typeof every === "number" ? () => every : every;
  let running: Promise<void> = Promise.resolve();
  let isStopped = false;
  let cancel = clock.after(times_ms.first ?? wait_ms(), begin);

  function begin(): void {
    running = work().finally(() => {
      if (!isStopped) cancel = clock.after(wait_ms(), begin);
    });
  }

  return {
    async stop() {
      isStopped = true;
      cancel();
      await running;
    },
  };
}
