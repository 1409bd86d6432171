/** Decides how long an engine works on after its caller has left: docs/design/usage.md, A caller who leaves. */
import type { Cancellation, Signal } from "../time/cancellation.ts";
import type { Clock } from "../time/clock.ts";

/** An engine that was asked for a whole answer may finish it within this time. */
export const finish_ms = 10_000;
/** The interval at which the engine's health is checked meanwhile. */
const look_ms = 1_000;

/** The signals that end the work on an answer. */
export interface Signals {
  /** Aborted when nobody waits for the answer any more: the caller has left, or the service has ended it. */
  signal: Signal;
  /** Aborted when the service has ended it, whether the caller is there or not. */
  halted: Signal;
}

export interface Finishing {
  /**
   * Ends an attempt whose engine was asked for a whole answer: aborted `finish_ms` after the caller has left, or
   * sooner.
   */
  readonly signal: Signal;
  /** The attempt is over. */
  stop(): void;
}

/** `isWell`: whether the engine may still be expected to answer. */
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
