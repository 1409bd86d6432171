/**
 * The lease of one hold: the time for which the node may forward an answer that the hold pays for. Checkpoints extend
 * it. The node has its own deadline for a lease: the time just before the command that set the lease was first sent,
 * plus the length of the lease, less a margin. After that deadline another node may have settled the hold, so nothing
 * may be forwarded any more (docs/design/metering.md, Rule 7: Forward only within the lease).
 */
import { Fault } from "../inference/fault.ts";
import { noUsage, type Usage } from "../inference/usage.ts";
import type { RequestFacts } from "../store/ledger.ts";
import { Cancellation, type Signal } from "../time/cancellation.ts";
import type { Clock } from "../time/clock.ts";
import { bookable } from "./allowance.ts";
import type { Batcher } from "./batcher.ts";

export interface LeaseParts {
  batcher: Batcher;
  clock: Clock;
  facts: Pick<RequestFacts, "requestId" | "organizationId">;
  /** The time on the node's clock just before the admission was first sent. */
  sentAt_ms: number;
  lease_ms: number;
  checkpoint_ms: number;
}

/** How long before the end of a lease the node stops forwarding. */
export function leaseMargin_ms(lease_ms: number): number {
  return Math.min(5_000, lease_ms / 10);
}

/**
 * The lease of one request's hold. A class, because closures would be made again for each request
 * (docs/design/runtime.md, Memory).
 */
export class Lease {
  readonly #parts: LeaseParts;
  readonly #lost = new Cancellation();
  #deadline_ms: number;
  #checkpointAt_ms: number;
  #usage = noUsage;
  #ended = false;
  #number = 0;
  #underway = false;
  #cancel: () => void;

  constructor(parts: LeaseParts) {
    this.#parts = parts;
    this.#deadline_ms = deadlineOf(parts.sentAt_ms, parts.lease_ms);
    this.#checkpointAt_ms = parts.clock.now_ms() + parts.checkpoint_ms;
    this.#cancel = this.#untilDue();
  }

  /** Aborted with a Fault when the lease is lost. */
  get signal(): Signal {
    return this.#lost;
  }

  deadline_ms(): number {
    return this.#deadline_ms;
  }

  /**
   * Throws the signal's Fault, also on a node that was suspended past its deadline, before the timer of the deadline
   * has fired.
   */
  assertHeld(): void {
    if (this.#parts.clock.now_ms() >= this.#deadline_ms) this.lose();
    this.#lost.throwIfAborted();
  }

  /** Notes the usage so far, which the next checkpoint sends. */
  count(usage: Usage): void {
    this.#usage = usage;
  }

  lose(): void {
    if (this.#ended) return;
    this.end();
    this.#lost.abort(
      new Fault(
        "storage_unavailable",
        "The service lost its connection to the usage store and ended the answer. Please try again.",
        { retryAfterSeconds: 5 },
      ),
    );
  }

  /** Stops the checkpoints and the deadline, because the request is being settled. */
  end(): void {
    this.#ended = true;
    this.#cancel();
  }

  /**
   * Waits for the next checkpoint or the deadline, whichever comes first. One timer serves both, because nearly every
   * request ends before either.
   */
  #untilDue(): () => void {
    const { clock } = this.#parts;
    return clock.after(Math.min(this.#checkpointAt_ms, this.#deadline_ms) - clock.now_ms(), () => this.#due());
  }

  #due(): void {
    const { clock, checkpoint_ms } = this.#parts;
    const now_ms = clock.now_ms();
    if (now_ms >= this.#deadline_ms) {
      this.lose();
      return;
    }
    if (now_ms >= this.#checkpointAt_ms) {
      this.#checkpointAt_ms = now_ms + checkpoint_ms;
      if (!this.#underway) void this.#extend();
    }
    this.#cancel = this.#untilDue();
  }

  async #extend(): Promise<void> {
    this.#underway = true;
    this.#number += 1;
    const { batcher, clock, facts, lease_ms } = this.#parts;
    const { requestId, organizationId } = facts;
    const sentAt_ms = clock.now_ms();
    try {
      const { answer } = await batcher.submit(
        { verb: "checkpoint", requestId, organizationId, number: this.#number, usage: bookable(this.#usage), lease_ms },
        this.#deadline_ms,
      );
      if (answer === "gone") this.lose();
      else this.#deadline_ms = Math.max(this.#deadline_ms, deadlineOf(sentAt_ms, lease_ms));
    } catch {
      // A failed checkpoint is not sent again, because the next one has the same usage and more. If none succeeds, the
      // deadline ends the request.
    } finally {
      this.#underway = false;
    }
  }
}

function deadlineOf(sentAt_ms: number, lease_ms: number): number {
  return sentAt_ms + lease_ms - leaseMargin_ms(lease_ms);
}
