/** Keeps a log readable when something fails many times a second: of each event so many lines, then a count of the others. */
import type { Clock } from "../time/clock.ts";

const window_ms = 10_000;
const lines_max = 20;

export interface FloodGate {
  /** Whether a line of this event may be written now; if not, it is counted. */
  admits(event: string): boolean;
  /** Tells what was counted and not told yet. */
  flush(): void;
}

/** `leftOut` hears, at the end of ten seconds in which there were too many, how many lines were left out. */
export function floodGate(clock: Clock, leftOut: (event: string, lines: number) => void): FloodGate {
  const windows = new Map<string, { lines: number; end(): void }>();

  function begin(event: string) {
    const end = () => {
      cancel();
      windows.delete(event);
      if (window.lines > lines_max) leftOut(event, window.lines - lines_max);
    };
    const window = { lines: 0, end };
    const cancel = clock.after(window_ms, end);
    windows.set(event, window);
    return window;
  }

  return {
    admits(event) {
      const window = windows.get(event) ?? begin(event);
      window.lines += 1;
      return window.lines <= lines_max;
    },
    flush() {
      for (const window of windows.values()) window.end();
    },
  };
}
