/**
 * The room that a hold gives: how many output tokens it covers, and its growth. It grows before tokens beyond it leave,
 * when half of its last step is used; where it cannot, a window is used to its end, and generation ends. Under other
 * limits than before it is reviewed before anything more leaves (docs/design/usage.md, Limits that change).
 */
import { type Granted, type GrowAnswer, type RequestFacts, units_max } from "../store/ledger.ts";
import type { Batcher } from "./batcher.ts";
import type { FollowedLimits, Limits } from "./followed-limits.ts";
import { type HoldPlan, stepTokens, whole } from "./hold.ts";
import type { Lease } from "./lease.ts";

export interface RoomParts {
  batcher: Batcher;
  facts: RequestFacts;
  limits: FollowedLimits;
  hold: HoldPlan;
  grant: Granted;
}

/** How far the hold grows at a time where the answer is longer than its cap, by the engine's doing or our count. */
const beyondCapTokens = 256;

/**
 * A class, as all that is made for each request: closures would be made anew with it (docs/design/runtime.md, Bun as a
 * server).
 */
export class Room {
  readonly #parts: RoomParts;
  readonly #lease: Lease;
  #promptUnits: number;
  #heldUnits: number;
  #covered: number;
  #wanted = 0;
  /** How many growths were sent. */
  #sent = 0;
  /** Under which the hold is what it is. */
  #reviewed: Limits;
  #growing: Promise<void> | null = null;
  /** There was no room to grow ahead of need; it is asked for once more when the tokens are there. */
  #full = false;

  constructor(parts: RoomParts, lease: Lease) {
    this.#parts = parts;
    this.#lease = lease;
    this.#promptUnits = parts.hold.inputUnits;
    this.#heldUnits = parts.grant.units;
    this.#covered = this.#coveredTokens();
    this.#reviewed = parts.limits.first;
  }

  /** See Reservation.permits. */
  permits(outputTokens: number): true | Promise<boolean> {
    const { limits, hold, grant } = this.#parts;
    this.#lease.assertHeld();
    const left = this.#wanted;
    this.#wanted = Math.max(left, outputTokens);
    const covered = this.#covered;
    if (limits.now() !== this.#reviewed || outputTokens > covered) return this.#waitFor(outputTokens, left);
    const half = Math.min(stepTokens, grant.outputTokens) / 2;
    const isLow = covered < hold.outputTokensCap && covered - this.#wanted < half;
    if (isLow && !this.#growing && !this.#full) this.#growing = this.#grow(covered + 1);
    return true;
  }

  /** Sets the price of the prompt by the latest count. If it is more than was held, less is left for the output. */
  countPrompt(units: number): void {
    if (units <= this.#promptUnits) return;
    this.#promptUnits = units;
    this.#covered = this.#coveredTokens();
  }

  /** Nothing of what was counted has left: the hold stays, and covers the answer that begins anew. */
  restart(): void {
    this.#wanted = 0;
    this.#promptUnits = this.#parts.hold.inputUnits;
    this.#covered = this.#coveredTokens();
  }

  get #price(): number {
    return this.#parts.facts.prices.output;
  }

  #coveredTokens(): number {
    const price = this.#price;
    return price === 0 ? Number.POSITIVE_INFINITY : Math.floor((this.#heldUnits - this.#promptUnits) / price);
  }

  #unitsFor(tokens: number): number {
    return whole(this.#promptUnits + tokens * this.#price, units_max);
  }

  /** How many tokens the next growth is to cover: a step more, the cap at most. */
  #target(): number {
    const { outputTokensCap } = this.#parts.hold;
    if (this.#wanted >= outputTokensCap) return this.#wanted + beyondCapTokens;
    return Math.min(Math.max(this.#wanted, this.#covered) + stepTokens, outputTokensCap);
  }

  /** `least` is how many tokens it must cover to be of use. */
  async #grow(least: number): Promise<void> {
    await this.#ask(this.#unitsFor(Math.max(this.#target(), least)), this.#unitsFor(least), (answer) => {
      if (answer.answer === "full" || answer.units <= this.#heldUnits) this.#full = true;
      else this.#holds(answer.units);
    });
  }

  /** Gives back the hold beyond `left`, the tokens that may have left, as far as other limits have no room for it. */
  async #review(left: number): Promise<void> {
    const current = this.#parts.limits.now();
    await this.#ask(this.#heldUnits, Math.min(this.#heldUnits, this.#unitsFor(left)), (answer) => {
      this.#reviewed = current;
      if (answer.answer === "granted") this.#holds(answer.units);
    });
  }

  #holds(units: number): void {
    this.#heldUnits = units;
    this.#covered = this.#coveredTokens();
  }

  async #ask(
    unitsTotal: number,
    unitsTotal_min: number,
    answered: (answer: Exclude<GrowAnswer, { answer: "gone" }>) => void,
  ): Promise<void> {
    const { batcher, facts, limits } = this.#parts;
    const lease = this.#lease;
    const { requestId, organizationId } = facts;
    try {
      this.#sent += 1;
      const amounts = { limits: limits.now().plan, unitsTotal, unitsTotal_min };
      const command = { verb: "grow", requestId, organizationId, number: this.#sent, ...amounts } as const;
      const answer = await batcher.submit(command, lease.deadline_ms());
      if (answer.answer === "gone") lease.lose();
      else answered(answer);
    } catch {
      // Too late: the lease has ended by now, or was extended, and then the tokens ask again.
    } finally {
      this.#growing = null;
    }
  }

  /**
   * Waits for room for `tokens` in all, of which `left` may have been delivered. A review whose answer was lost may have been
   * carried out: until one is answered nobody knows what is held.
   */
  async #waitFor(tokens: number, left: number): Promise<boolean> {
    const { limits } = this.#parts;
    const lease = this.#lease;
    const { promise: loss, reject } = Promise.withResolvers<never>();
    loss.catch(() => {});
    const listening = lease.signal.listen(reject);
    try {
      if (this.#growing) await Promise.race([this.#growing, loss]);
      this.#full = false;
      while (limits.now() !== this.#reviewed || (this.#covered < tokens && !this.#full)) {
        lease.assertHeld();
        this.#growing ??= limits.now() === this.#reviewed ? this.#grow(tokens) : this.#review(left);
        await Promise.race([this.#growing, loss]);
      }
      lease.assertHeld();
      return this.#covered >= tokens;
    } finally {
      listening.stop();
    }
  }
}
