/**
 * One admitted request, from its grant to its settlement: the room of its hold (room.ts), its lease (lease.ts), and its
 * end, told to the ledger once.
 */
import type { Usage } from "../inference/usage.ts";
import { type Granted, type RequestFacts, type Settle, type SettleAnswer, units_max } from "../store/ledger.ts";
import type { Plan } from "../store/plan.ts";
import type { Signal } from "../time/cancellation.ts";
import type { Clock } from "../time/clock.ts";
import type { Batcher } from "./batcher.ts";
import { bookable, type HoldPlan, promptUnits, whole } from "./hold.ts";
import { lease } from "./lease.ts";
import { room } from "./room.ts";

export type Settlement = Pick<
  Settle,
  "usage" | "units" | "outcome" | "stoppedBy" | "errorCode" | "route" | "reportRejected"
>;

export interface Reservation {
  readonly grant: Granted;
  /** Aborted with a Fault when the hold may have been settled by another: nothing may be forwarded any more. */
  readonly signal: Signal;
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
  /** As it was admitted under, and as it is at each moment: the same object while nothing changed. */
  plan: Plan;
  planNow: () => Plan;
  hold: HoldPlan;
  grant: Granted;
  /** The clock's reading before the admission was first sent. */
  sentAt_ms: number;
  lease_ms: number;
  checkpoint_ms: number;
  /** Told once, when the ledger has confirmed the settlement. */
  settled?: (answer: SettleAnswer) => void;
}

export function reservation(parts: ReservationParts): Reservation {
  const { batcher, facts, planNow, grant } = parts;
  const held = lease(parts);
  const { permits, countPrompt } = room({ ...parts, lease: held });
  let settled: Promise<void> | null = null;

  async function tell({ usage, units, ...ending }: Settlement): Promise<void> {
    held.end();
    const answer = await batcher.submit({
      verb: "settle",
      ...facts,
      limits: planNow(),
      usage: bookable(usage),
      units: whole(units, units_max),
      ...ending,
    });
    parts.settled?.(answer);
  }

  return {
    grant,
    signal: held.signal,
    permits,
    progress(counted) {
      const usage = bookable(counted);
      held.count(usage);
      countPrompt(promptUnits(usage, facts.prices));
    },
    settle(settlement) {
      settled ??= tell(settlement);
      return settled;
    },
  };
}
