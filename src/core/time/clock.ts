/** Time as a parameter, so that a node runs unchanged under a virtual clock. */
export interface Clock {
  /** Monotonic milliseconds; only differences have a meaning. */
  now_ms(): number;
  /** Runs the function once, after this time. Returns a function that prevents it. */
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

const steps_ms = [1_000, 100];

/**
 * A clock for repeated work that needs no exact instant. Its timers end at whole tenths of a second of this process,
 * and those of a second or more at whole seconds, so that work that is due at about the same time shares a wake-up: in
 * an idle process a wake-up costs more than most of that work. It keeps no process alive. A wait ends at most half a
 * step sooner or later; one that is shorter than every step is exact.
 */
export function alignedClock(exact: Clock = idleClock()): Clock {
  return {
    now_ms: exact.now_ms,
    after(delay_ms, run) {
      const step_ms = steps_ms.find((one) => one <= delay_ms);
      if (step_ms === undefined) return exact.after(delay_ms, run);
      const now_ms = exact.now_ms();
      const due_ms = Math.round((now_ms + delay_ms) / step_ms) * step_ms;
      // Timers cut off fractions; one that ended before its step would wait for the same step again.
      return exact.after(Math.ceil(due_ms - now_ms), run);
    },
  };
}
