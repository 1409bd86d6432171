/**
 * The conditions of exact admission. A check that asks somebody runs beside the probes, on its own clock; a probe reads its
 * last word and waits for nothing. A word that is too old counts as a problem: whoever should have renewed it hangs. What
 * this process knows by itself is read when it is wanted, and is never old.
 */
import type { Clock } from "../time/clock.ts";
import { Countdown } from "../time/countdown.ts";

/** After that a check has no word but that it does not answer. */
const check_ms = 3500;
/** Beyond its interval and its own time, how late a word may be; a busy process runs its timers late. */
const grace_ms = 2000;

interface Check {
  name: string;
  /** A warning shows in /readyz?verbose and never makes it fail. */
  severity: "required" | "warning";
  /** From the end of one run to the next; of what is known: between two looks whether it has turned. */
  every_ms: number;
}

/** Asks somebody. */
export interface AskingCheck extends Check {
  /** Null when it holds, else a sentence without addresses or secrets. */
  run(): Promise<string | null>;
}

/** A check of a fact that this process knows. */
export interface KnowingCheck extends Check {
  /** The same as `run`, but at once. */
  read(): string | null;
}

export type ReadinessCheck = AskingCheck | KnowingCheck;

export interface CheckResult {
  name: string;
  severity: ReadinessCheck["severity"];
  problem: string | null;
}

export interface Readiness {
  /** The last words, at once. */
  results(): CheckResult[];
  /** Resolves when every required check has had its first word. */
  began: Promise<void>;
  stop(): void;
}

export interface ReadinessOptions {
  lifecycle: { readonly draining: boolean };
  clock: Clock;
  /** The required checks that failed when it changed whether there are any; the first word counts as a change from none. */
  turned?(failing: CheckResult[]): void;
}

export function readinessOf(
  checks: readonly ReadinessCheck[],
  { lifecycle, clock, turned }: ReadinessOptions,
): Readiness {
  let wasReady = true;
  const words = () => watches.map(({ word }) => word());
  const spoke = () => {
    const failing = words().filter(isFailing);
    if (watches.some(({ spoken }) => !spoken()) || wasReady === (failing.length === 0)) return;
    wasReady = failing.length === 0;
    turned?.(failing);
  };
  const watches = checks.map((check) => watchOver(check, clock, spoke));
  const required = watches.filter((_, index) => checks[index]?.severity === "required");
  return {
    results() {
      const draining = lifecycle.draining ? "the service is draining" : null;
      return [...words(), { name: "draining", severity: "required", problem: draining }];
    },
    began: Promise.all(required.map(({ began }) => began)).then(() => {}),
    stop() {
      for (const watch of watches) watch.stop();
    },
  };
}

export function isFailing({ severity, problem }: CheckResult): boolean {
  return severity === "required" && problem !== null;
}

function watchOver(check: ReadinessCheck, clock: Clock, spoke: () => void) {
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
    spoke();
    if (!isStopped) cancel = clock.after(every_ms, () => void round());
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
    spoken: () => last !== null,
    word: (): CheckResult => ({ name, severity, problem: problemNow() }),
    stop() {
      isStopped = true;
      cancel?.();
    },
  };
}
