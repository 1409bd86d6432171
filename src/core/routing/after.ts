/**
 * Decides the next step after an attempt that delivered nothing: another attempt, or the fault for the caller.
 *
 * Also limits the attempts beyond the first to a share of the requests of the last minute, with a minimum for quiet
 * times. So an outage is not multiplied: failing engines get at most a fifth more requests than clients send. Pure.
 */
import { Fault } from "../inference/fault.ts";
import type { AttemptEnd, AttemptKind } from "../upstream/attempt.ts";

/**
 * The next step. `stop`: no further attempt, because any engine would fail the same way. `same`: an attempt at the same
 * engine once more, on a new connection. `larger`: at an engine with a larger context. `other`: at any other engine.
 */
type Next = "stop" | "same" | "larger" | "other";

export const nextAfter: Record<AttemptKind, Next> = {
  answered: "stop",
  empty: "other",
  abandoned: "stop",
  unreachable: "other",
  stale: "same",
  broken: "other",
  timeout: "other",
  busy: "other",
  failed: "other",
  refused: "other",
  rejected: "stop",
  too_long: "larger",
  malformed: "other",
};

/**
 * The ends of attempts in which no engine did any work. Another attempt after such an end multiplies no load, and does
 * not count against the retry budget.
 */
export const isFree: ReadonlySet<AttemptKind> = new Set<AttemptKind>(["unreachable", "too_long"]);

/** If a full engine names a longer wait than this, the request is not sent to that engine again. */
const repeat_ms_max = 5_000;
const pause_ms = 250;

/**
 * The wait before the last engine gets the request once more, if no other engine is left and the last one refused the
 * request without working on it. It is the time that the engine named, or else a random time, so that not all callers
 * come back at once. Null: the engine does not get the request again.
 */
export function repeatAfter_ms(end: AttemptEnd, draw: () => number): number | null {
  const { kind, status, retryAfter_ms } = end;
  if (status === undefined || (kind !== "busy" && kind !== "failed")) return null;
  if (retryAfter_ms !== undefined) return retryAfter_ms <= repeat_ms_max ? retryAfter_ms : null;
  return kind === "failed" ? pause_ms * (1 + draw()) : null;
}

export interface Failure {
  kind: AttemptKind;
  fault: Fault;
}

/**
 * The fault after several failures: the fault of the last failure, unless that engine was only full. If all engines
 * were full, `retry-after` is the wait for the first of them to have room.
 */
export function combinedFault(failures: readonly Failure[]): Fault {
  const last = failures.at(-1)!;
  if (last.kind !== "busy") return last.fault;
  const broken = failures.findLast(({ kind }) => kind !== "busy");
  if (broken) return broken.fault;
  const waits = failures.map(({ fault }) => fault.details.retryAfterSeconds ?? 1);
  return new Fault(last.fault.code, last.fault.message, {
    ...last.fault.details,
    retryAfterSeconds: Math.min(...waits),
  });
}

export interface RetryBudget {
  /** Counts a request. Each request permits a fraction of an attempt beyond the first. */
  offered(now_ms: number): void;
  /** Counts one more attempt if the budget permits it, and returns whether it does. */
  take(now_ms: number): boolean;
}

/** The budgets of all models, by public id: an outage of one model does not use up the budget of another. */
export function retryBudgets(): (model: string) => RetryBudget {
  const budgets = new Map<string, RetryBudget>();
  return (model) => {
    const known = budgets.get(model) ?? retryBudget();
    budgets.set(model, known);
    return known;
  };
}

const share = 0.2;
const floor = 20;
const slot_ms = 5_000;
const slots = 12;

interface Slot {
  number: number;
  requests: number;
  retries: number;
}

export function retryBudget(): RetryBudget {
  const ring: Slot[] = Array.from({ length: slots }, () => ({ number: -1, requests: 0, retries: 0 }));

  function slotAt(now_ms: number): Slot {
    const number = Math.floor(now_ms / slot_ms);
    const slot = ring[number % slots]!;
    if (slot.number !== number) Object.assign(slot, { number, requests: 0, retries: 0 });
    return slot;
  }

  return {
    offered(now_ms) {
      slotAt(now_ms).requests += 1;
    },
    take(now_ms) {
      const slot = slotAt(now_ms);
      const inWindow = ring.filter(({ number }) => number > slot.number - slots);
      const requests = inWindow.reduce((sum, each) => sum + each.requests, 0);
      const retries = inWindow.reduce((sum, each) => sum + each.retries, 0);
      if (retries >= Math.max(floor, requests * share)) return false;
      slot.retries += 1;
      return true;
    },
  };
}
