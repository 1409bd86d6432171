/** Work that is asked for often and done once for all who asked, never twice at a time. It keeps no process alive. */

import { type Clock, idleClock } from "./clock.ts";

export interface Gathered {
  /** It is done so long from now, unless it is due or under way already. */
  ask(wait_ms: number): void;
  /** No more of it; resolves when none is under way. */
  stop(): Promise<void>;
}

/** `work` never rejects; it answers how long until it is due again, or null when nothing is left to do. */
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
