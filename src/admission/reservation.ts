/**
 * One admitted request, from its grant to its settlement: the room of its hold (room.ts), its lease (lease.ts), and its
 * end, told to the ledger once.
 */
import type { Usage } from "../inference/usage.ts";
import { type Granted, type RequestFacts, type Settle, type SettleAnswer, units_max } from "../store/ledger.ts";
import type { Signal } from "../time/cancellation.ts";
import type { Clock } from "../time/clock.ts";
import type { Batcher } from "./batcher.ts";
import type { FollowedLimits } from "./followed-limits.ts";
import { bookable, type HoldPlan, promptUnits, whole } from "./hold.ts";
import { Lease } from "./lease.ts";
import { Room } from "./room.ts";

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
  /** Forgets the count so far, because the answer begins anew. */
  restart(): void;
  /** Throws the signal's Fault where the lease is over, also before the signal says so. */
  assertHeld(): void;
  /** Ends the request, whatever became of it. Only the first call counts. Resolves when the ledger has confirmed it. */
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
  /** Told once, when the ledger has confirmed the settlement. */
  settled?: (answer: SettleAnswer) => void;
}

export function reservation(parts: ReservationParts): Reservation {
  return new HeldReservation(parts);
}

/** A class, as all that is made for each request: closures would be made anew with it (docs/design/runtime.md, Bun as a server). */
class HeldReservation implements Reservation {
  readonly #parts: ReservationParts;
  readonly #lease: Lease;
  readonly #room: Room;
  #settled: Promise<void> | null = null;

  constructor(parts: ReservationParts) {
    this.#parts = parts;
    this.#lease = new Lease(parts);
    this.#room = new Room(parts, this.#lease);
  }

  get grant(): Granted {
    return this.#parts.grant;
  }

  get signal(): Signal {
    return this.#lease.signal;
  }

  permits(outputTokens: number): true | Promise<boolean> {
    return this.#room.permits(outputTokens);
  }

  progress(counted: Usage): void {
    const usage = bookable(counted);
    const { stream, prices } = this.#parts.facts;
    // An answer that nobody streams is delivered at its end alone: where the node dies before, nothing is charged.
    if (stream) this.#lease.count(usage);
    this.#room.countPrompt(promptUnits(usage, prices));
  }

  restart(): void {
    this.#room.restart();
  }

  assertHeld(): void {
    this.#lease.assertHeld();
  }

  settle(settlement: Settlement): Promise<void> {
    this.#settled ??= this.#tell(settlement);
    return this.#settled;
  }

  async #tell({ usage, units, ...ending }: Settlement): Promise<void> {
    this.#lease.end();
    const { batcher, facts, limits, settled } = this.#parts;
    const answer = await batcher.submit({
      verb: "settle",
      ...facts,
      limits: limits.now().plan,
      usage: bookable(usage),
      units: whole(units, units_max),
      ...ending,
    });
    settled?.(answer);
  }
}
