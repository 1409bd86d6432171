/**
 * Keeps a log readable if something fails many times a second: writes a limited number of lines of each event, then a
 * count of the others.
 */
import type { Clock } from "../../core/time/clock.ts";

const window_ms = 10_000;
const lines_max = 20;

/**
 * Makes the gate of a log. `leftOut` is called after ten seconds in which there were too many lines, with the number of
 * lines left out.
 */
export function floodGate(clock: Clock, leftOut: (event: string, lines: number) => void) {
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
    /** Reports whether a line of this event may be written now. If not, the line is counted. */
    admits(event: string): boolean {
      const window = windows.get(event) ?? begin(event);
      window.lines += 1;
      return window.lines <= lines_max;
    },
    /** Reports the numbers of lines left out that have not been reported yet. */
    flush(): void {
      for (const window of windows.values()) window.end();
    },
  };
}
