/**
 * The size of a hold: how many output tokens it covers, and how it grows. It grows when half of its last step is used,
 * before tokens beyond it leave; if it cannot grow, a window is used to its end, and generation ends. When limits have
 * changed, the hold is reviewed before anything more leaves (docs/design/usage.md, Limits that change).
 */
import { costOf, tokensFor } from "../inference/money.ts";
import { type Granted, type GrowAnswer, nanos_max, type RequestFacts, type StoppingLimit } from "../store/ledger.ts";
import type { Batcher } from "./batcher.ts";
import type { FollowedLimits, Limits } from "./followed-limits.ts";
import { type HoldPlan, stepTokens, wholeUpTo } from "./hold.ts";
import type { Lease } from "./lease.ts";
import { stoppingLimit } from "./limited-by.ts";

export interface RoomParts {
  batcher: Batcher;
  facts: RequestFacts;
  limits: FollowedLimits;
  hold: HoldPlan;
  grant: Granted;
}

/**
 * How many tokens the hold grows at a time once the answer is longer than its cap, because the engine exceeded it or
 * our count differs.
 */
const beyondCapTokens = 256;

/** A class, because closures would be made again for each request (docs/design/runtime.md, Bun as a server). */
export class HoldRoom {
  readonly #parts: RoomParts;
  readonly #lease: Lease;
  #promptNanos: number;
  #heldNanos: number;
  #covered: number;
  #wanted = 0;
  /** The number of growths that were sent. */
  #sent = 0;
  /** The edition of the limits under which the hold was granted. */
  #reviewed: Limits;
  #growing: Promise<void> | null = null;
  /**
   * Whether the limits had no room when the hold tried to grow ahead of need. It tries once more when the tokens have
   * come.
   */
  #full = false;
  /** The limit that left no room for the last growth that was of no use. */
  #fullBy: StoppingLimit | null = null;

  constructor(parts: RoomParts, lease: Lease) {
    this.#parts = parts;
    this.#lease = lease;
    this.#promptNanos = parts.hold.inputNanos;
    this.#heldNanos = parts.grant.nanos;
    this.#covered = this.#coveredTokens();
    this.#reviewed = parts.limits.first;
  }

  get fullBy(): StoppingLimit | null {
    return this.#fullBy;
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
  countPrompt(nanos: number): void {
    if (nanos <= this.#promptNanos) return;
    this.#promptNanos = nanos;
    this.#covered = this.#coveredTokens();
  }

  /** None of the counted tokens has left: the hold stays, and covers the answer that begins again. */
  restart(): void {
    this.#wanted = 0;
    this.#promptNanos = this.#parts.hold.inputNanos;
    this.#covered = this.#coveredTokens();
  }

  get #price(): number {
    return this.#parts.facts.prices.output;
  }

  #coveredTokens(): number {
    return tokensFor(this.#heldNanos - this.#promptNanos, this.#price);
  }

  #nanosFor(tokens: number): number {
    return wholeUpTo(this.#promptNanos + costOf(tokens, this.#price), nanos_max);
  }

  /** The output tokens that the next growth is to cover: one step more, but at most the request's cap. */
  #target(): number {
    const { outputTokensCap } = this.#parts.hold;
    if (this.#wanted >= outputTokensCap) return this.#wanted + beyondCapTokens;
    return Math.min(Math.max(this.#wanted, this.#covered) + stepTokens, outputTokensCap);
  }

  /** Asks the ledger to let the hold cover more tokens. `least`: fewer would be of no use. */
  async #grow(least: number): Promise<void> {
    await this.#ask(this.#nanosFor(Math.max(this.#target(), least)), this.#nanosFor(least), (answer) => {
      if (answer.answer === "full") this.#fullBy = stoppingLimit(answer.limits);
      if (answer.answer === "full" || answer.nanos <= this.#heldNanos) this.#full = true;
      else this.#holds(answer.nanos);
    });
  }

  /**
   * Gives back the part of the hold that the changed limits have no room for. `left` tokens may have been delivered,
   * and stay held.
   */
  async #review(left: number): Promise<void> {
    const current = this.#parts.limits.now();
    await this.#ask(this.#heldNanos, Math.min(this.#heldNanos, this.#nanosFor(left)), (answer) => {
      this.#reviewed = current;
      if (answer.answer === "granted") this.#holds(answer.nanos);
    });
  }

  #holds(nanos: number): void {
    this.#heldNanos = nanos;
    this.#covered = this.#coveredTokens();
  }

  async #ask(
    nanosTotal: number,
    nanosTotal_min: number,
    answered: (answer: Exclude<GrowAnswer, { answer: "gone" }>) => void,
  ): Promise<void> {
    const { batcher, facts, limits } = this.#parts;
    const lease = this.#lease;
    const { requestId, organizationId } = facts;
    try {
      this.#sent += 1;
      const amounts = { limits: limits.now().plan, nanosTotal, nanosTotal_min };
      const command = { verb: "grow", requestId, organizationId, number: this.#sent, ...amounts } as const;
      const answer = await batcher.submit(command, lease.deadline_ms());
      if (answer.answer === "gone") lease.lose();
      else answered(answer);
    } catch {
      // The lease has ended, or was extended meanwhile; in that case the next token asks again.
    } finally {
      this.#growing = null;
    }
  }

  /**
   * Waits for room for `tokens` in all, of which `left` may have been delivered. A review whose answer was lost may
   * have been carried out: until one is answered, the amount held is unknown.
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
