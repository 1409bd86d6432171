// A clock that moves only when a test moves it, and a ledger that fails when a test tells it to.

import type { ClockRange, Command, Ledger, LedgerAnswer, Recovered } from "../../../src/core/store/ledger.ts";
import type { Clock } from "../../../src/core/time/clock.ts";
import { LedgerModel, type ModelOrganization } from "../store/ledger-model.ts";

export class VirtualClock implements Clock {
  #now_ms = 1_000_000;
  #timers: { at_ms: number; run: () => void }[] = [];

  now_ms(): number {
    return this.#now_ms;
  }

  after(delay_ms: number, run: () => void): () => void {
    const timer = { at_ms: this.#now_ms + Math.max(0, delay_ms), run };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((one) => one !== timer);
    };
  }

  get timers(): number {
    return this.#timers.length;
  }

  /**
   * Moves the clock, runs the timers that become due meanwhile, in order, and lets promises settle after each timer.
   */
  async advance(by_ms: number): Promise<void> {
    const until_ms = this.#now_ms + by_ms;
    await settled();
    while (true) {
      const next = this.#timers.reduce<{ at_ms: number; run: () => void } | null>(
        (first, one) => (one.at_ms <= until_ms && (!first || one.at_ms < first.at_ms) ? one : first),
        null,
      );
      if (!next) break;
      this.#timers = this.#timers.filter((one) => one !== next);
      this.#now_ms = Math.max(this.#now_ms, next.at_ms);
      next.run();
      await settled();
    }
    this.#now_ms = until_ms;
  }

  /** Lets time pass without running any timer, as on a node that was frozen. */
  freeze(for_ms: number): void {
    this.#now_ms += for_ms;
  }
}

/** Lets all promises settle that wait for nothing else. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

export const organizationId = "org_00000000000070008000000000000001";

export type Wire = "well" | "down" | "unanswered" | "silent";

/**
 * The reference model of the ledger, in memory, behind a connection that a test can cut. The store's time is the
 * clock's.
 */
export class CutLedger implements Pick<Ledger, "run" | "recover"> {
  readonly model: LedgerModel;
  readonly organization: ModelOrganization = {
    anchors: [{ at_ms: 0, weekFrom_ms: Number.NEGATIVE_INFINITY, monthFrom_ms: Number.NEGATIVE_INFINITY }],
    extra: { enabled: false, capNanos: null },
  };
  readonly batches: Command[][] = [];
  /**
   * The fate of a batch: done and answered; refused before it is done; done, but its answer lost; or no answer at all.
   */
  wire: (commands: Command[]) => Wire | Promise<Wire> = () => "well";
  recoveries: number[] = [];
  /** The milliseconds by which the store's clock is ahead of the node's. */
  clockIsAhead_ms = 0;

  constructor(clock: Clock) {
    this.model = new LedgerModel(
      new Map([[organizationId, this.organization]]),
      () => clock.now_ms() + this.clockIsAhead_ms,
    );
  }

  async run(commands: readonly Command[]): Promise<LedgerAnswer[]> {
    const batch = [...commands];
    this.batches.push(batch);
    const wire = await this.wire(batch);
    if (wire === "down") throw new Error("the store is away");
    if (wire === "silent") return new Promise(() => {});
    const answers = this.model.run(batch);
    if (wire === "unanswered") throw new Error("the answer was lost");
    return answers;
  }

  async recover(limit: number, range?: ClockRange): Promise<Recovered> {
    if ((await this.wire([])) !== "well") throw new Error("the store is away");
    this.recoveries.push(limit);
    return { settled: this.model.recover(limit, range), at: new Date(this.model.now_ms()) };
  }
}
