/** Time as an argument, so that a node runs unchanged under a virtual clock. */
export interface Clock {
  /** Monotonic milliseconds; only differences have a meaning. */
  now_ms(): number;
  /** Runs it once, after this time. Returns a function that prevents it. */
  after(delay_ms: number, run: () => void): () => void;
}

/** Resolves after this time. */
export function passed(clock: Pick<Clock, "after">, delay_ms: number): Promise<void> {
  return new Promise((resolve) => {
    clock.after(delay_ms, resolve);
  });
}

/** A clock whose timers keep no process alive. */
export function idleClock(): Clock {
  return {
    now_ms: () => performance.now(),
    after(delay_ms, run) {
      const timer = setTimeout(run, delay_ms);
      timer.unref();
      return () => clearTimeout(timer);
    },
  };
}

export function systemClock(): Clock {
  return {
    now_ms: () => performance.now(),
    after(delay_ms, run) {
      const timer = setTimeout(run, delay_ms);
      return () => clearTimeout(timer);
    },
  };
}
