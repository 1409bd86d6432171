/**
 * One admitted request, from its grant to its settlement: its hold, grown before it is outrun; its lease, extended by
 * checkpoints; its end, told to the ledger once. Nothing is forwarded past the node's own deadline: the lease, counted
 * from before the command that set it was first sent, less a margin (design: rule 7).
 */
import { Fault } from "../inference/fault.ts";
import { noUsage, type Usage } from "../inference/usage.ts";
import type { Granted, RequestFacts, Settle, UsageLimits } from "../store/ledger.ts";
import type { Batcher } from "./batcher.ts";
import type { Clock } from "./clock.ts";
import { bookable, type HoldPlan, promptUnits, stepTokens, unitsMax, whole } from "./hold.ts";

export type Settlement = Pick<Settle, "usage" | "units" | "outcome" | "stoppedBy" | "errorCode" | "route">;

export interface Reservation {
  readonly grant: Granted;
  /** Aborted with a Fault when the hold may have been settled by another: nothing may be forwarded any more. */
  readonly signal: AbortSignal;
  /**
   * Whether so many output tokens in all may have left. True at once while they are held; else a promise, which waits for
   * the hold to grow. False: a usage window is at its end, and generation ends with the protocol's length reason. Throws,
   * or rejects with, the signal's Fault.
   */
  permits(outputTokens: number): true | Promise<boolean>;
  /** What was counted so far, for the next checkpoint. */
  progress(usage: Usage): void;
  /** Ends the request, whatever became of it. Only the first call counts. Resolves when the ledger has confirmed it. */
  settle(settlement: Settlement): Promise<void>;
}

export interface ReservationParts {
  batcher: Batcher;
  clock: Clock;
  facts: RequestFacts;
  limits: UsageLimits;
  hold: HoldPlan;
  grant: Granted;
  /** The clock's reading before the admission was first sent. */
  sentAt_ms: number;
  lease_ms: number;
  checkpoint_ms: number;
}

/** The node stops this much before its lease ends. */
export function leaseMargin_ms(lease_ms: number): number {
  return Math.min(5_000, lease_ms / 10);
}

export function reservation(parts: ReservationParts): Reservation {
  const { batcher, clock, grant, lease_ms } = parts;
  const { requestId, organizationId } = parts.facts;
  const price = parts.facts.prices.output;
  const lost = new AbortController();
  const waitingForRoom = new Set<(lostWith: unknown) => void>();
  let deadline_ms = deadlineOf(parts.sentAt_ms);
  let settled: Promise<void> | null = null;

  let usage = noUsage;
  let promptHeld = parts.hold.inputUnits;
  let unitsHeld = grant.units;
  let covered = tokensCovered();
  let wanted = 0;
  let growing: Promise<void> | null = null;
  /** The ledger found no room to grow ahead of need; it is asked once more when the tokens are needed. */
  let full = false;

  let checkpoints = 0;
  let checkpointUnderway = false;
  let cancelCheckpoint = clock.after(parts.checkpoint_ms, checkpoint);
  let cancelDeadline = clock.after(deadline_ms - clock.now_ms(), watchDeadline);

  function deadlineOf(sentAt_ms: number): number {
    return sentAt_ms + lease_ms - leaseMargin_ms(lease_ms);
  }

  function tokensCovered(): number {
    return price === 0 ? Number.POSITIVE_INFINITY : Math.floor((unitsHeld - promptHeld) / price);
  }

  function lose(): void {
    if (lost.signal.aborted || settled) return;
    stopTimers();
    const fault = new Fault(
      "storage_unavailable",
      "The service lost touch with its usage store while it answered, and ended the answer. Please try again.",
      { retryAfterSeconds: 5 },
    );
    lost.abort(fault);
    for (const told of waitingForRoom) told(fault);
  }

  function watchDeadline(): void {
    const left_ms = deadline_ms - clock.now_ms();
    if (left_ms <= 0) lose();
    else cancelDeadline = clock.after(left_ms, watchDeadline);
  }

  function stopTimers(): void {
    cancelCheckpoint();
    cancelDeadline();
  }

  function checkpoint(): void {
    cancelCheckpoint = clock.after(parts.checkpoint_ms, checkpoint);
    if (checkpointUnderway) return;
    checkpointUnderway = true;
    checkpoints += 1;
    const sentAt_ms = clock.now_ms();
    batcher
      .submit(
        { verb: "checkpoint", requestId, organizationId, number: checkpoints, usage, leaseMs: lease_ms },
        deadline_ms,
      )
      .then(
        ({ answer }) => {
          if (answer === "gone") lose();
          else deadline_ms = Math.max(deadline_ms, deadlineOf(sentAt_ms));
        },
        () => {}, // The next one says more; without any the deadline comes.
      )
      .finally(() => {
        checkpointUnderway = false;
      });
  }

  /** Asks for room up to a step beyond what is wanted; `needed` says that those tokens stand ready to leave. */
  function grow(needed: boolean): Promise<void> {
    const cap = parts.hold.outputTokensCap;
    const ahead = Math.max(wanted, covered) + stepTokens;
    // A count of ours may exceed the cap that the engine keeps: then in small steps.
    const target = wanted < cap ? Math.min(ahead, Math.max(cap, wanted)) : wanted + Math.min(stepTokens, 256);
    const least = needed ? wanted : covered + 1;
    return batcher
      .submit(
        {
          verb: "grow",
          requestId,
          organizationId,
          limits: parts.limits,
          unitsTotal: whole(promptHeld + Math.max(target, least) * price, unitsMax),
          unitsTotalMin: whole(promptHeld + least * price, unitsMax),
        },
        deadline_ms,
      )
      .then(
        (answer) => {
          if (answer.answer === "gone") lose();
          else if (answer.answer === "full") full = true;
          else {
            unitsHeld = Math.max(unitsHeld, answer.units);
            covered = tokensCovered();
          }
        },
        () => {}, // Refused for lateness: the deadline has come, or the next tokens ask again.
      )
      .finally(() => {
        growing = null;
      });
  }

  async function roomFor(tokens: number): Promise<boolean> {
    let lostWith: ((fault: unknown) => void) | undefined;
    const loss = new Promise<never>((_, reject) => {
      lostWith = reject;
    });
    loss.catch(() => {});
    waitingForRoom.add(lostWith!);
    try {
      if (growing) await Promise.race([growing, loss]);
      let refused = false;
      while (covered < tokens && !refused) {
        assertHeld();
        full = false;
        growing ??= grow(true);
        await Promise.race([growing, loss]);
        refused = full;
      }
      assertHeld();
      return covered >= tokens;
    } finally {
      waitingForRoom.delete(lostWith!);
    }
  }

  /** Also what a node asks itself that was frozen: its timers may come after what it is about to forward. */
  function assertHeld(): void {
    if (!settled && clock.now_ms() >= deadline_ms) lose();
    lost.signal.throwIfAborted();
  }

  return {
    grant,
    signal: lost.signal,
    permits(outputTokens) {
      assertHeld();
      wanted = Math.max(wanted, outputTokens);
      if (wanted > covered) return roomFor(outputTokens);
      const step = Math.min(stepTokens, grant.outputTokens);
      if (!growing && !full && covered < parts.hold.outputTokensCap && covered - wanted < step / 2)
        growing = grow(false);
      return true;
    },
    progress(counted) {
      usage = bookable(counted);
      const prompt = promptUnits(usage, parts.facts.prices);
      if (prompt <= promptHeld) return;
      // The estimate was too low: what is held covers fewer output tokens than it seemed to.
      promptHeld = prompt;
      covered = tokensCovered();
    },
    settle(settlement) {
      if (settled) return settled;
      stopTimers();
      const { outcome, stoppedBy, errorCode, route } = settlement;
      settled = batcher
        .submit({
          verb: "settle",
          ...parts.facts,
          limits: parts.limits,
          usage: bookable(settlement.usage),
          units: whole(settlement.units, unitsMax),
          outcome,
          stoppedBy,
          errorCode,
          route,
        })
        .then(() => {});
      return settled;
    },
  };
}
