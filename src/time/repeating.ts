/** Work that comes again and again, never twice at a time, and that keeps no process alive. */
import { type Clock, idleClock } from "./clock.ts";

export interface Repeating {
  /** No more of it; resolves when none is under way. */
  stop(): Promise<void>;
}

/** `work` never rejects. The wait begins when it has ended; before the first time it may be another. */
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
