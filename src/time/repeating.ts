/** Work that comes again and again, never twice at a time, and that keeps no process alive. */

export interface Repeating {
  /** No more of it; resolves when none is under way. */
  stop(): Promise<void>;
}

/** `work` never rejects. The wait begins when it has ended; before the first time it may be another. */
export function repeating(work: () => Promise<void>, times_ms: { first?: number; every: number }): Repeating {
  let running: Promise<void> = Promise.resolve();
  let isStopped = false;
  let timer = after(times_ms.first ?? times_ms.every);

  function after(wait_ms: number): ReturnType<typeof setTimeout> {
    const started = setTimeout(() => {
      running = work().finally(() => {
        if (!isStopped) timer = after(times_ms.every);
      });
    }, wait_ms);
    started.unref();
    return started;
  }

  return {
    async stop() {
      isStopped = true;
      clearTimeout(timer);
      await running;
    },
  };
}
