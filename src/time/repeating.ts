/** Runs work at intervals, never twice at a time. It keeps no process alive. */
import { type Clock, idleClock } from "./clock.ts";

export interface Repeating {
  /** Stops. Resolves when no run is under way. */
  stop(): Promise<void>;
}

/** `work` never rejects. The wait begins when it has ended; the first wait may be different. */
export function repeating(
  work: () => Promise<void>,
  times_ms: { first?: number; every: number },
  clock: Pick<Clock, "after"> = idleClock(),
): Repeating {
  let running: Promise<void> = Promise.resolve();
  let isStopped = false;
  let cancel = clock.after(times_ms.first ?? times_ms.every, begin);

  function begin(): void {
    running = work().finally(() => {
      if (!isStopped) cancel = clock.after(times_ms.every, begin);
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
