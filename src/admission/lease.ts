/**
 * The lease of one hold: extended by checkpoints, and watched. The node's own deadline is the lease counted from before
 * the command that set it was first sent, less a margin; past it another node may have settled the hold, and nothing may
 * be forwarded any more (docs/design/metering.md, Rule 7: Forward only within the lease).
 */
import { Fault } from "../inference/fault.ts";
import { noUsage, type Usage } from "../inference/usage.ts";
import type { RequestFacts } from "../store/ledger.ts";
import type { Clock } from "../time/clock.ts";
import type { Batcher } from "./batcher.ts";

export interface Lease {
  /** Aborted with a Fault when the lease is lost. */
  readonly signal: AbortSignal;
  deadline_ms(): number;
  /** Throws the signal's Fault; also on a node that was frozen past its deadline, before any timer has told it. */
  assertHeld(): void;
  /** For the next checkpoint. */
  count(usage: Usage): void;
  lose(): void;
  /** No more checkpoints, and nothing to lose: the request is being settled. */
  end(): void;
}

export interface LeaseParts {
  batcher: Batcher;
  clock: Clock;
  facts: Pick<RequestFacts, "requestId" | "organizationId">;
  /** The clock's reading before the admission was first sent. */
  sentAt_ms: number;
  lease_ms: number;
  checkpoint_ms: number;
}

/** The node stops this much before its lease ends. */
export function leaseMargin_ms(lease_ms: number): number {
  return Math.min(5_000, lease_ms / 10);
}

export function lease({ batcher, clock, facts, sentAt_ms, lease_ms, checkpoint_ms }: LeaseParts): Lease {
  const { requestId, organizationId } = facts;
  const lost = new AbortController();
  const deadlineOf = (sentAt_ms: number) => sentAt_ms + lease_ms - leaseMargin_ms(lease_ms);
  let deadline_ms = deadlineOf(sentAt_ms);
  let usage = noUsage;
  let ended = false;
  let number = 0;
  let underway = false;
  let checkpointAt_ms = clock.now_ms() + checkpoint_ms;
  let cancel = untilDue();

  /** One timer for both: of nearly every request neither comes. */
  function untilDue(): () => void {
    return clock.after(Math.min(checkpointAt_ms, deadline_ms) - clock.now_ms(), due);
  }

  function due(): void {
    const now_ms = clock.now_ms();
    if (now_ms >= deadline_ms) {
      lose();
      return;
    }
    if (now_ms >= checkpointAt_ms) {
      checkpointAt_ms = now_ms + checkpoint_ms;
      if (!underway) void extend();
    }
    cancel = untilDue();
  }

  async function extend(): Promise<void> {
    underway = true;
    number += 1;
    const sentAt_ms = clock.now_ms();
    try {
      const command = { verb: "checkpoint", requestId, organizationId, number, usage, lease_ms } as const;
      const { answer } = await batcher.submit(command, deadline_ms);
      if (answer === "gone") lose();
      else deadline_ms = Math.max(deadline_ms, deadlineOf(sentAt_ms));
    } catch {
      // The next one says more; without any, the deadline comes.
    } finally {
      underway = false;
    }
  }

  function lose(): void {
    if (ended) return;
    end();
    lost.abort(
      new Fault(
        "storage_unavailable",
        "The service lost its connection to the usage store and ended the answer. Please try again.",
        { retryAfterSeconds: 5 },
      ),
    );
  }

  function end(): void {
    ended = true;
    cancel();
  }

  return {
    signal: lost.signal,
    deadline_ms: () => deadline_ms,
    assertHeld() {
      if (clock.now_ms() >= deadline_ms) lose();
      lost.signal.throwIfAborted();
    },
    count(counted) {
      usage = counted;
    },
    lose,
    end,
  };
}
