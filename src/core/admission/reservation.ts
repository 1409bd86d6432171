/**
 * One admitted request, from its grant to its settlement: the output tokens that its hold (the amount reserved for it)
 * covers, its lease (lease.ts), the limits that apply to it, its sliding rates, and its settlement, which is sent to
 * the ledger once.
 *
 * The hold grows when half of its last step is used, and in any case before tokens that it does not cover are
 * delivered. If the hold cannot grow, a usage window is used up, and generation ends. When limits have changed, the
 * hold is reviewed before anything more is delivered (docs/design/usage.md, Limits that change).
 */
import { promptTokens, type Usage } from "../inference/usage.ts";
import {
  type Granted,
  type GrowAnswer,
  nanos_max,
  type RequestFacts,
  type Settle,
  type SettleAnswer,
  type StoppingLimit,
} from "../store/ledger.ts";
import type { Plan } from "../store/plan.ts";
import type { RateReadings, RateTaken } from "../store/rates.ts";
import type { Signal } from "../time/cancellation.ts";
import type { Clock } from "../time/clock.ts";
import { bookable, type HoldPlan, HoldRoom, stepTokens, wholeUpTo } from "./allowance.ts";
import type { Batcher } from "./batcher.ts";
import { Lease } from "./lease.ts";
import { stoppingLimit, tightestLimit } from "./limited-by.ts";
import type { LimitChanges } from "./limits-in-force.ts";

export type Settlement = Pick<
  Settle,
  "usage" | "searches" | "nanos" | "outcome" | "stoppedBy" | "errorCode" | "route" | "reportRejected"
>;

export interface ReservationParts {
  batcher: Batcher;
  clock: Clock;
  facts: RequestFacts;
  plan: Plan;
  /**
   * Returns the organization's current plan, which is the same object until the plan changes. Absent: the plan does not
   * change.
   */
  planNow: (() => Plan) | undefined;
  changes: LimitChanges;
  /** The `edition` of `changes` before the admission was sent (limits-in-force.ts). */
  edition: number;
  /** The ids of the subjects whose limits apply: the organization, the key, its team in the ledger, and its person. */
  subjects: readonly string[];
  hold: HoldPlan;
  grant: Granted;
  isSlight: boolean;
  /** The time on the node's clock just before the admission was first sent. */
  sentAt_ms: number;
  lease_ms: number;
  checkpoint_ms: number;
  /** The amount that the request took from its limits per minute (sliding rates); null if no such limit applies. */
  taken: RateTaken | null;
  settled?: (answer: SettleAnswer, requestId: string) => void;
}

const unlimited: RateReadings = Object.freeze({ requests: null, tokens: null });

/**
 * One admitted request as this node runs it. A class, because closures would be made again for each request
 * (docs/design/runtime.md, Memory).
 */
export class HeldReservation {
  readonly #parts: ReservationParts;
  readonly #lease: Lease;
  readonly #room: HoldRoom;
  /** The highest total of output tokens that `permits` was asked about so far. */
  #wanted = 0;
  /** The number of commands to grow the hold that were sent to the ledger. */
  #sent = 0;
  #growing: Promise<void> | null = null;
  /**
   * Whether the limits left no room when the hold was to grow ahead of need. Growing is tried once more when tokens
   * that the hold does not cover are to be delivered.
   */
  #full = false;
  /** The limit that left no room the last time the hold could not grow. */
  #fullBy: StoppingLimit | null = null;
  /** The plan, and the `edition` of the limit changes, when the limits were last read. */
  #plan: Plan;
  #edition: number;
  /**
   * How often the limits that apply have changed since the admission was sent. `#revision`: the number when the limits
   * were last read. `#reviewed`: the number at the last review of the hold.
   */
  #revision = 0;
  #reviewed = 0;
  #settled: Promise<void> | null = null;

  constructor(parts: ReservationParts) {
    this.#parts = parts;
    this.#lease = new Lease(parts);
    this.#room = new HoldRoom(parts.facts.prices, parts.grant.nanos, parts.hold.inputNanos);
    this.#plan = parts.plan;
    this.#edition = parts.edition;
  }

  get grant(): Granted {
    return this.#parts.grant;
  }

  /**
   * Whether the answer is not streamed, its hold covers the whole cap, and the hold is at most a hundredth of what each
   * window has left.
   */
  get isSlight(): boolean {
    return this.#parts.isSlight;
  }

  /** The state of the limits per minute before this request took from them. */
  get rates(): RateReadings {
    return this.#parts.taken?.readings ?? unlimited;
  }

  /** Aborted with a Fault when another node may have settled the hold: nothing may be forwarded any more. */
  get signal(): Signal {
    return this.#lease.signal;
  }

  /**
   * Whether output may be delivered up to this total number of tokens: true while the hold covers them, else a promise
   * that waits for the hold to grow. False: a usage window is used up, and generation ends with the protocol's length
   * reason. Throws, or rejects with, the signal's Fault.
   */
  permits(outputTokens: number): true | Promise<boolean> {
    const { hold, grant } = this.#parts;
    this.#lease.assertHeld();
    const left = this.#wanted;
    this.#wanted = Math.max(left, outputTokens);
    const covered = this.#room.tokens;
    if (this.#limitsRead() !== this.#reviewed || outputTokens > covered) return this.#waitFor(outputTokens, left);
    const half = Math.min(stepTokens, grant.outputTokens) / 2;
    const isLow = covered < hold.outputTokensCap && covered - this.#wanted < half;
    if (isLow && !this.#growing && !this.#full) this.#growing = this.#grow(covered + 1);
    return true;
  }

  /** The limit that leaves no room for more output; before any limit is full, the one with the least room at the grant. */
  stoppingLimit(): StoppingLimit {
    return this.#fullBy ?? tightestLimit(this.#parts.grant);
  }

  /**
   * Records the usage so far. The next checkpoint includes the usage if it was delivered. If the prompt costs more, by
   * the latest count, than was held for it, less of the hold is left for the output.
   */
  progress(usage: Usage, isDelivered: boolean): void {
    if (isDelivered) this.#lease.count(usage);
    this.#room.promptCosts(usage);
  }

  /** Discards the usage so far, of which nothing was delivered. The hold stays for the answer that begins again. */
  restart(): void {
    this.#wanted = 0;
    this.#room.set(this.#room.heldNanos, this.#parts.hold.inputNanos);
  }

  /** Throws the signal's Fault if the lease is over, even if the signal has not been aborted yet. */
  assertHeld(): void {
    this.#lease.assertHeld();
  }

  /**
   * Ends the request, whatever its outcome. Only the first call counts. Resolves when the ledger has confirmed the
   * settlement.
   */
  settle(settlement: Settlement): Promise<void> {
    this.#settled ??= this.#settle(settlement);
    return this.#settled;
  }

  async #settle(settlement: Settlement): Promise<void> {
    this.#lease.end();
    const { batcher, facts, taken, settled } = this.#parts;
    const booked = bookable(settlement.usage);
    const confirmed = batcher.submit({
      verb: "settle",
      ...facts,
      ...settlement,
      limits: this.#planNow(),
      usage: booked,
      nanos: wholeUpTo(settlement.nanos, nanos_max),
    });
    void taken?.correct(promptTokens(booked) + booked.outputTokens);
    settled?.(await confirmed, facts.requestId);
  }

  /**
   * The organization's plan; the last known one if reading it fails because of a defect, since every settlement must
   * reach the ledger.
   */
  #planNow(): Plan {
    const { plan, planNow } = this.#parts;
    try {
      return planNow?.() ?? plan;
    } catch {
      return this.#plan;
    }
  }

  /** Reads the limits that apply to the request, and returns how often they have changed. */
  #limitsRead(): number {
    const { changes, subjects } = this.#parts;
    const plan = this.#planNow();
    const { edition } = changes;
    if (plan === this.#plan && edition === this.#edition) return this.#revision;
    if (plan !== this.#plan || changes.concern(subjects, this.#edition)) this.#revision += 1;
    this.#plan = plan;
    this.#edition = edition;
    return this.#revision;
  }

  /** Asks the ledger to let the hold cover more tokens. `least`: the fewest tokens that would be of use. */
  async #grow(least: number): Promise<void> {
    const room = this.#room;
    const target = room.target(this.#wanted, this.#parts.hold.outputTokensCap);
    await this.#ask(room.nanosFor(Math.max(target, least)), room.nanosFor(least), (answer) => {
      if (answer.answer === "full") this.#fullBy = stoppingLimit(answer.limits);
      if (answer.answer === "full" || answer.nanos <= room.heldNanos) this.#full = true;
      else room.set(answer.nanos);
    });
  }

  /**
   * Gives back the part of the hold that the changed limits have no room for. The hold still covers `left` output
   * tokens, which may have been delivered.
   */
  async #review(left: number): Promise<void> {
    const current = this.#limitsRead();
    const room = this.#room;
    await this.#ask(room.heldNanos, Math.min(room.heldNanos, room.nanosFor(left)), (answer) => {
      this.#reviewed = current;
      if (answer.answer === "granted") room.set(answer.nanos);
    });
  }

  async #ask(
    nanosTotal: number,
    nanosTotal_min: number,
    answered: (answer: Exclude<GrowAnswer, { answer: "gone" }>) => void,
  ): Promise<void> {
    const { batcher, facts } = this.#parts;
    const lease = this.#lease;
    const { requestId, organizationId } = facts;
    try {
      this.#sent += 1;
      const amounts = { limits: this.#planNow(), nanosTotal, nanosTotal_min };
      const command = { verb: "grow", requestId, organizationId, number: this.#sent, ...amounts } as const;
      const answer = await batcher.submit(command, lease.deadline_ms());
      if (answer.answer === "gone") lease.lose();
      else answered(answer);
    } catch {
      // Either the lease has ended, or it was extended while the ledger did not answer. In the second case the delivery
      // of the next token sends the command again.
    } finally {
      this.#growing = null;
    }
  }

  /**
   * Waits until the hold covers `tokens` output tokens in all, of which `left` may have been delivered. A review whose
   * answer was lost may have been carried out, so the amount held is unknown until a review is answered.
   */
  async #waitFor(tokens: number, left: number): Promise<boolean> {
    const lease = this.#lease;
    const { promise: loss, reject } = Promise.withResolvers<never>();
    loss.catch(() => {});
    const listening = lease.signal.listen(reject);
    try {
      if (this.#growing) await Promise.race([this.#growing, loss]);
      this.#full = false;
      while (this.#limitsRead() !== this.#reviewed || (this.#room.tokens < tokens && !this.#full)) {
        lease.assertHeld();
        this.#growing ??= this.#limitsRead() === this.#reviewed ? this.#grow(tokens) : this.#review(left);
        await Promise.race([this.#growing, loss]);
      }
      lease.assertHeld();
      return this.#room.tokens >= tokens;
    } finally {
      listening.stop();
    }
  }
}

/** The members of an admitted request that its callers use. */
export type Reservation = Pick<HeldReservation, keyof HeldReservation>;
