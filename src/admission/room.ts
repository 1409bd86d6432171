/**
 * The room that a hold gives: how many output tokens it covers, and its growth. It grows before tokens beyond it leave,
 * when half of its last step is used; where it cannot, a window is used to its end, and generation ends. Under another
 * plan than before it is reviewed before anything more leaves (docs/design/usage.md, Plans that change).
 */
import { type Granted, type GrowAnswer, type RequestFacts, units_max } from "../store/ledger.ts";
import type { Plan } from "../store/plan.ts";
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
  plan: Plan;
  planNow: () => Plan;
  hold: HoldPlan;
  grant: Granted;
}

/** How far the hold grows at a time where the answer is longer than its cap, by the engine's doing or our count. */
const beyondCapTokens = 256;

export function room({ batcher, lease, facts, plan, planNow, hold, grant }: RoomParts): Room {
  const { requestId, organizationId } = facts;
  const price = facts.prices.output;
  const half = Math.min(stepTokens, grant.outputTokens) / 2;
  let promptUnits = hold.inputUnits;
  let heldUnits = grant.units;
  let covered = coveredTokens();
  let wanted = 0;
  /** How many growths were sent. */
  let sent = 0;
  /** Under which the hold is what it is. */
  let reviewed = plan;
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
    await ask(unitsFor(Math.max(target(), least)), unitsFor(least), (answer) => {
      if (answer.answer === "full" || answer.units <= heldUnits) full = true;
      else holds(answer.units);
    });
  }

  /** What is held beyond `left`, the tokens that may have left, is given back as far as another plan has no room for it. */
  async function review(left: number): Promise<void> {
    const current = planNow();
    await ask(heldUnits, Math.min(heldUnits, unitsFor(left)), (answer) => {
      reviewed = current;
      if (answer.answer === "granted") holds(answer.units);
    });
  }

  function holds(units: number): void {
    heldUnits = units;
    covered = coveredTokens();
  }

  async function ask(
    unitsTotal: number,
    unitsTotal_min: number,
    answered: (answer: Exclude<GrowAnswer, { answer: "gone" }>) => void,
  ): Promise<void> {
    try {
      sent += 1;
      const amounts = { limits: planNow(), unitsTotal, unitsTotal_min };
      const command = { verb: "grow", requestId, organizationId, number: sent, ...amounts } as const;
      const answer = await batcher.submit(command, lease.deadline_ms());
      if (answer.answer === "gone") lease.lose();
      else answered(answer);
    } catch {
      // Too late: the lease has ended by now, or was extended, and then the tokens ask again.
    } finally {
      growing = null;
    }
  }

  /**
   * For so many tokens in all, of which `left` may have left. A review whose answer was lost may have been carried out:
   * until one is answered nobody knows what is held.
   */
  async function waitFor(tokens: number, left: number): Promise<boolean> {
    const { promise: loss, reject } = Promise.withResolvers<never>();
    loss.catch(() => {});
    const listening = lease.signal.listen(reject);
    try {
      if (growing) await Promise.race([growing, loss]);
      full = false;
      while (planNow() !== reviewed || (covered < tokens && !full)) {
        lease.assertHeld();
        growing ??= planNow() === reviewed ? grow(tokens) : review(left);
        await Promise.race([growing, loss]);
      }
      lease.assertHeld();
      return covered >= tokens;
    } finally {
      listening.stop();
    }
  }

  return {
    permits(outputTokens) {
      lease.assertHeld();
      const left = wanted;
      wanted = Math.max(wanted, outputTokens);
      if (planNow() !== reviewed || outputTokens > covered) return waitFor(outputTokens, left);
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
