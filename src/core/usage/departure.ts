/**
 * Decides how long an engine goes on with an answer after its caller has left: docs/design/usage.md, A caller who
 * leaves.
 */
import type { RouteState } from "../routing/health.ts";
import type { Cancellation, Signal } from "../time/cancellation.ts";
import type { Clock } from "../time/clock.ts";

/** How long an engine that was asked not to stream may take to finish its answer. */
export const finish_ms = 10_000;
/** How often the engine's health is checked while it finishes the answer. */
const look_ms = 1_000;

export interface Signals {
  /** Aborted when nobody waits for the answer any more: the caller has left, or the service ended the request. */
  signal: Signal;
  /** Aborted when the service ended the request, whether the caller is there or not. */
  halted: Signal;
}

export interface Finishing {
  /** Ends the attempt: aborted `finish_ms` after the caller has left, or sooner. */
  readonly signal: Signal;
  /** Stops watching the caller and the engine. Call it when the attempt has ended. */
  stop(): void;
}

/** Whether an engine in this state can still be expected to finish an answer. */
export function mayFinish(state: RouteState): boolean {
  return state !== "open" && state !== "down";
}

/**
 * The signal of an attempt whose engine was asked not to stream. `isWell`: whether the engine can still be expected to
 * finish.
 */
export function finishing({ signal, halted }: Signals, clock: Pick<Clock, "after">, isWell: () => boolean): Finishing {
  const work: Cancellation = halted.child();
  let cancel: (() => void) | null = null;
  const look = (rest_ms: number) => {
    if (rest_ms <= 0 || !isWell()) return work.abort(signal.reason);
    cancel = clock.after(look_ms, () => look(rest_ms - look_ms));
  };
  const listening = signal.listen(() => {
    if (!work.aborted) look(finish_ms);
  });
  return {
    signal: work,
    stop() {
      listening.stop();
      work.detach();
      cancel?.();
    },
  };
}
