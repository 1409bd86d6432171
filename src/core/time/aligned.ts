/**
 * A clock for work that comes again and again and needs no exact instant. Its timers end at whole tenths of a second of this
 * process, and those of a second or more at whole seconds, so that what is due at about the same time shares a wake: a wake
 * costs a process that does little more than most of that work. It keeps no process alive.
 */
import { type Clock, idleClock } from "./clock.ts";

const steps_ms = [1_000, 100];

/** A wait ends at most half a step sooner or later. One that is shorter than every step is exact. */
export function alignedClock(exact: Clock = idleClock()): Clock {
  return {
    now_ms: exact.now_ms,
    after(delay_ms, run) {
      const step_ms = steps_ms.find((one) => one <= delay_ms);
      if (step_ms === undefined) return exact.after(delay_ms, run);
      const now_ms = exact.now_ms();
      const due_ms = Math.round((now_ms + delay_ms) / step_ms) * step_ms;
      // Timers cut off fractions, and one that ended before its step would wait for it again.
      return exact.after(Math.ceil(due_ms - now_ms), run);
    },
  };
}
