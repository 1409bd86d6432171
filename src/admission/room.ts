/**
 * The room that a hold gives: how many output tokens it covers, and its growth. It grows before tokens beyond it leave,
 * when half of its last step is used; where it cannot, a window is used to its end, and generation ends.
 */
import { type Granted, type RequestFacts, type UsageLimits, units_max } from "../store/ledger.ts";
import type { Batcher } from "./batcher.ts";
import { type HoldPlan, stepTokens, whole } from "./hold.ts";
import type { Lease } from "./lease.ts";

export interface Room {
  /** As Reservation.permits. */
  permits(outputTokens: number): true | Promise<boolean>;
  /** What the prompt costs by the latest count. More than was held for it leaves less for the output. */
  countPrompt(units: number): void;
}

export interface RoomParts {
  batcher: Batcher;
  lease: Lease;
  facts: RequestFacts;
  limits: UsageLimits;
  hold: HoldPlan;
  grant: Granted;
}

/** How far the hold grows at a time where the answer is longer than its cap, by the engine's doing or our count. */
const beyondCapTokens = 256;

export function room({ batcher, lease, facts, limits, hold, grant }: RoomParts): Room {
  const { requestId, organizationId } = facts;
  const price = facts.prices.output;
  const half = Math.min(stepTokens, grant.outputTokens) / 2;
  let promptUnits = hold.inputUnits;
  let heldUnits = grant.units;
  let covered = coveredTokens();
  let wanted = 0;
  let growing: Promise<void> | null = null;
  /** There was no room to grow ahead of need; it is asked for once more when the tokens are there. */
  let full = false;

  function coveredTokens(): number {
    return price === 0 ? Number.POSITIVE_INFINITY : Math.floor((heldUnits - promptUnits) / price);
  }

  function unitsFor(tokens: number): number {
    return whole(promptUnits + tokens * price, units_max);
  }

  /** How many tokens the next growth is to cover: a step more, the cap at most. */
  function target(): number {
    if (wanted >= hold.outputTokensCap) return wanted + beyondCapTokens;
    return Math.min(Math.max(wanted, covered) + stepTokens, hold.outputTokensCap);
  }

  /** `least` is how many tokens it must cover to be of use. */
  async function grow(least: number): Promise<void> {
    try {
      const unitsTotal = unitsFor(Math.max(target(), least));
      const unitsTotal_min = unitsFor(least);
      const command = { verb: "grow", requestId, organizationId, limits, unitsTotal, unitsTotal_min } as const;
      const answer = await batcher.submit(command, lease.deadline_ms());
      if (answer.answer === "gone") lease.lose();
      else if (answer.answer === "full" || answer.units <= heldUnits) full = true;
      else {
        heldUnits = answer.units;
        covered = coveredTokens();
      }
    } catch {
      // Too late: the lease has ended by now, or was extended, and then the tokens ask again.
    } finally {
      growing = null;
    }
  }

  async function waitFor(tokens: number): Promise<boolean> {
    const { promise: loss, reject } = Promise.withResolvers<never>();
    loss.catch(() => {});
    const lost = () => reject(lease.signal.reason);
    lease.signal.addEventListener("abort", lost, { once: true });
    try {
      if (growing) await Promise.race([growing, loss]);
      full = false;
      while (covered < tokens && !full) {
        lease.assertHeld();
        growing ??= grow(tokens);
        await Promise.race([growing, loss]);
      }
      lease.assertHeld();
      return covered >= tokens;
    } finally {
      lease.signal.removeEventListener("abort", lost);
    }
  }

  return {
    permits(outputTokens) {
      lease.assertHeld();
      wanted = Math.max(wanted, outputTokens);
      if (outputTokens > covered) return waitFor(outputTokens);
      if (!growing && !full && covered < hold.outputTokensCap && covered - wanted < half) growing = grow(covered + 1);
      return true;
    },
    countPrompt(units) {
      if (units <= promptUnits) return;
      promptUnits = units;
      covered = coveredTokens();
    },
  };
}
