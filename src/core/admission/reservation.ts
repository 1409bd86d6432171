/**
 * One admitted request, from its grant to its settlement: the room of its hold (room.ts), its lease (lease.ts), its
 * sliding rates (rates.ts), and its end, which is sent to the ledger once.
 */
import { promptTokens, type Usage } from "../inference/usage.ts";
import {
  type Granted,
  nanos_max,
  type RequestFacts,
  type Settle,
  type SettleAnswer,
  type StoppingLimit,
} from "../store/ledger.ts";
import type { RateReadings, RateTaken } from "../store/rates.ts";
import type { Signal } from "../time/cancellation.ts";
import type { Clock } from "../time/clock.ts";
import type { Batcher } from "./batcher.ts";
import type { FollowedLimits } from "./followed-limits.ts";
import { bookable, type HoldPlan, promptNanos, wholeUpTo } from "./hold.ts";
import { Lease } from "./lease.ts";
import { tightestLimit } from "./limited-by.ts";
import { HoldRoom } from "./room.ts";

export type Settlement = Pick<
  Settle,
  "usage" | "searches" | "nanos" | "outcome" | "stoppedBy" | "errorCode" | "route" | "reportRejected"
>;

export interface Reservation {
  readonly grant: Granted;
  /** The readings of the sliding rates before this request took from them. */
  readonly rates: RateReadings;
  /** Aborted with a Fault when another node may have settled the hold: nothing may be forwarded any more. */
  readonly signal: Signal;
  /**
   * Whether this many output tokens in all may be delivered: true at once while they are held, else a promise that
   * waits for the hold to grow. False: a usage window is used up, and generation ends with the protocol's length
   * reason. Throws, or rejects with, the signal's Fault.
   */
  permits(outputTokens: number): true | Promise<boolean>;
  /** The limit that leaves no room for more output; until one does, the limit that left the least at the grant. */
  stoppingLimit(): StoppingLimit;
  /** Records the usage so far. If it was delivered, the next checkpoint has it. */
  progress(usage: Usage, isDelivered: boolean): void;
  /** Discards the usage so far, because the answer begins again. */
  restart(): void;
  /** Throws the signal's Fault if the lease is over, even if the signal has not been aborted yet. */
  assertHeld(): void;
  /** Ends the request, whatever its outcome. Only the first call counts. Resolves when the ledger has confirmed it. */
  settle(settlement: Settlement): Promise<void>;
}

export interface ReservationParts {
  batcher: Batcher;
  clock: Clock;
  facts: RequestFacts;
  limits: FollowedLimits;
  hold: HoldPlan;
  grant: Granted;
  /** The clock's reading before the admission was first sent. */
  sentAt_ms: number;
  lease_ms: number;
  checkpoint_ms: number;
  /** The amount that the request took from sliding rates; null if none limits it. */
  taken: RateTaken | null;
  /** Called once, when the ledger has confirmed the settlement. */
  settled?: (answer: SettleAnswer, requestId: string) => void;
}

const unlimited: RateReadings = Object.freeze({ requests: null, tokens: null });

/** A class, because closures would be made again for each request (docs/design/runtime.md, Bun as a server). */
export class HeldReservation implements Reservation {
  readonly #parts: ReservationParts;
  readonly #lease: Lease;
  readonly #room: HoldRoom;
  #settled: Promise<void> | null = null;

  constructor(parts: ReservationParts) {
    this.#parts = parts;
    this.#lease = new Lease(parts);
    this.#room = new HoldRoom(parts, this.#lease);
  }

  get grant(): Granted {
    return this.#parts.grant;
  }

  get rates(): RateReadings {
    return this.#parts.taken?.readings ?? unlimited;
  }

  get signal(): Signal {
    return this.#lease.signal;
  }

  permits(outputTokens: number): true | Promise<boolean> {
    return this.#room.permits(outputTokens);
  }

  stoppingLimit(): StoppingLimit {
    return this.#room.fullBy ?? tightestLimit(this.#parts.grant);
  }

  progress(usage: Usage, isDelivered: boolean): void {
    if (isDelivered) this.#lease.count(usage);
    this.#room.countPrompt(promptNanos(usage, this.#parts.facts.prices));
  }

  restart(): void {
    this.#room.restart();
  }

  assertHeld(): void {
    this.#lease.assertHeld();
  }

  settle(settlement: Settlement): Promise<void> {
    this.#settled ??= this.#settle(settlement);
    return this.#settled;
  }

  async #settle({ usage, nanos, ...ending }: Settlement): Promise<void> {
    this.#lease.end();
    const { batcher, facts, limits, taken, settled } = this.#parts;
    const booked = bookable(usage);
    const confirmed = batcher.submit({
      verb: "settle",
      ...facts,
      limits: limits.now().plan,
      usage: booked,
      nanos: wholeUpTo(nanos, nanos_max),
      ...ending,
    });
    void taken?.correct(promptTokens(booked) + booked.outputTokens);
    settled?.(await confirmed, facts.requestId);
  }
}
