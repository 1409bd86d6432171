/** Runs work that is requested often, once for all requests, and never twice at a time. It keeps no process alive. */

import { type Clock, idleClock } from "./clock.ts";

export interface Gathered {
  /** Requests a run after this time, unless one is due or under way already. */
  ask(wait_ms: number): void;
  /** Stops. Resolves when no run is under way. */
  stop(): Promise<void>;
}

/** `work` never rejects. It returns the time until the next run, or null if nothing is left to do. */
export function gathered(work: () => Promise<number | null>, clock: Pick<Clock, "after"> = idleClock()): Gathered {
  let cancel: (() => void) | null = null;
  let running: Promise<void> | null = null;
  let isStopped = false;

  function ask(wait_ms: number): void {
    if (cancel || running || isStopped) return;
    cancel = clock.after(wait_ms, () => {
      cancel = null;
      running = run();
    });
  }

  async function run(): Promise<void> {
    const again_ms = await work();
    running = null;
    if (again_ms !== null) ask(again_ms);
  }

  return {
    ask,
    async stop() {
      isStopped = true;
      cancel?.();
      await running;
    },
  };
}
