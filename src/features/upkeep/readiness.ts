/**
 * The conditions of readiness. A check that asks another party runs in the background at its own interval; a probe
 * reads the last result and waits for nothing. A result that is too old counts as a problem: the code that should have
 * renewed it hangs. Facts that this process knows itself are read when they are needed, and are never old.
 */

import type { CheckResult } from "../../core/operations/dependencies.ts";
import { isFailing } from "../../core/operations/health.ts";
import { Countdown } from "../../core/time/cancellation.ts";
import type { Clock } from "../../core/time/clock.ts";

/** How long a check may run. A check that takes longer fails, because the other party does not answer. */
const check_ms = 3500;
/**
 * The extra age that a result may have, beyond the check's interval and `check_ms`: a busy process runs its timers
 * late.
 */
const grace_ms = 2000;

interface Check {
  name: string;
  severity: CheckResult["severity"];
  /**
   * The time between two runs. For a fact that this process knows itself: the time between two looks at whether it has
   * changed.
   */
  every_ms: number;
}

/** A check that asks another party. */
export interface AskingCheck extends Check {
  /** The problem in a sentence without addresses or secrets; null if there is none. */
  run(): Promise<string | null>;
}

/** A check of a fact that this process knows. */
interface KnowingCheck extends Check {
  /** As `run`, but synchronous. */
  read(): string | null;
}

export type ReadinessCheck = AskingCheck | KnowingCheck;

export interface Readiness {
  /** The latest result of each check, without waiting. */
  results(): CheckResult[];
  /** Resolves when every required check has its first result. */
  began: Promise<void>;
  stop(): void;
}

interface ReadinessOptions {
  lifecycle: { readonly draining: boolean };
  clock: Clock;
  /** The clock that measures the waits between runs, if it is not `clock`. */
  intervals?: Pick<Clock, "after">;
  /** Called with the failing required checks when the first one begins to fail, and when none fails any more. */
  turned?(failing: CheckResult[]): void;
}

export function readinessOf(
  checks: readonly ReadinessCheck[],
  { lifecycle, clock, intervals = clock, turned }: ReadinessOptions,
): Readiness {
  let wasReady = true;
  const results = () => watches.map(({ result }) => result());
  const ran = () => {
    const failing = results().filter(isFailing);
    if (watches.some(({ hasResult }) => !hasResult()) || wasReady === (failing.length === 0)) return;
    wasReady = failing.length === 0;
    turned?.(failing);
  };
  const watches = checks.map((check) => watchOver(check, { clock, intervals }, ran));
  const required = watches.filter((_, index) => checks[index]?.severity === "required");
  return {
    results() {
      const draining = lifecycle.draining ? "the service is draining" : null;
      return [...results(), { name: "draining", severity: "required", problem: draining }];
    },
    began: Promise.all(required.map(({ began }) => began)).then(() => {}),
    stop() {
      for (const watch of watches) watch.stop();
    },
  };
}

function watchOver(
  check: ReadinessCheck,
  { clock, intervals }: Required<Pick<ReadinessOptions, "clock" | "intervals">>,
  ran: () => void,
) {
  const { name, severity, every_ms } = check;
  const first = Promise.withResolvers<void>();
  const age_ms_max = every_ms + check_ms + grace_ms;
  let last: { problem: string | null; at_ms: number } | null = null;
  let cancel: (() => void) | null = null;
  let isStopped = false;

  async function round(): Promise<void> {
    const problem = await ("read" in check ? check.read() : answerOf(check));
    last = { problem, at_ms: clock.now_ms() };
    first.resolve();
    ran();
    if (!isStopped) cancel = intervals.after(every_ms, () => void round());
  }

  async function answerOf({ run }: AskingCheck): Promise<string | null> {
    const late = Promise.withResolvers<string>();
    const countdown = new Countdown(() => late.resolve(`no answer within ${check_ms} ms`), clock);
    countdown.set(check_ms);
    cancel = () => countdown.stop();
    const problem = await Promise.race([run().catch(() => "the check failed"), late.promise]);
    countdown.stop();
    return problem;
  }

  function problemNow(): string | null {
    if ("read" in check) return check.read();
    if (!last) return "not checked yet";
    const age_ms = clock.now_ms() - last.at_ms;
    return age_ms > age_ms_max ? `last checked ${Math.floor(age_ms / 1000)} s ago` : last.problem;
  }

  void round();
  return {
    began: first.promise,
    hasResult: () => last !== null,
    result: (): CheckResult => ({ name, severity, problem: problemNow() }),
    stop() {
      isStopped = true;
      cancel?.();
    },
  };
}
