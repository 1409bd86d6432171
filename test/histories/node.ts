// One node of a history (a simulated run): the product's admission (src/core/admission), with a clock, a wire and
// random numbers of the node.

import { type Admission, admission } from "../../src/core/admission/admission.ts";
import { recovery } from "../../src/core/admission/recovery.ts";
import type { KeepingNeeds } from "../../src/features/responses/needs.ts";
import { chanceFor, kindOf } from "./chances.ts";
import type { Judge } from "./judge.ts";
import { keepingNeedsOf } from "./kept-stores.ts";
import { type Knowledge, knowledgeOf } from "./office.ts";
import { ratesOf } from "./rates.ts";
import { checkpoint_ms, lease_ms, type NodePlan, sweep_ms } from "./scenario.ts";
import { NodeClock } from "./time.ts";
import { type NodeLedger, wireOf } from "./wire.ts";
import type { Trouble, World } from "./world.ts";

export class Node {
  readonly clock: NodeClock;
  readonly admission: Admission;
  /**
   * The periods in which a fault stood between this node and the store, including periods in which the node itself was
   * frozen.
   */
  readonly troubles: Trouble[] = [];
  /** Set while the node is cut off from the store. `silent`: its calls hang until they time out. */
  cut: { silent: boolean } | null = null;
  drains = false;
  /** The periods in which a fault kept the node from learning of an administrator's decisions. */
  readonly askingTroubles: Trouble[] = [];
  readonly knows: Knowledge;
  /** The node's dependencies for the product's code for kept answers. */
  readonly keeps: KeepingNeeds;
  readonly #messages = new Map<string, number>();
  /** The number of batches in flight (`underway`), and of requests that have not ended (`open`). */
  underway = 0;
  open = 0;

  constructor(
    readonly world: World,
    judge: Judge,
    readonly index: number,
    /** The number of this life of the node; a start after a crash begins the next one. */
    readonly life: number,
    readonly plan: NodePlan,
  ) {
    const { time, defects } = world;
    this.clock = new NodeClock(time, plan);
    const chance = chanceFor(world.seed, kindOf.retry, this.serial);
    const wire = wireOf(world, judge, this);
    const ledger = defects.ledger?.(wire, this.clock) ?? wire;
    const believed_ms = defects.believedLease_ms ?? lease_ms;
    this.knows = knowledgeOf(world, this);
    this.keeps = keepingNeedsOf(world, this);
    this.admission = admission({
      changes: this.knows.changes,
      ledger: believed_ms === lease_ms ? ledger : withLease(ledger),
      rates: ratesOf(world, judge, this),
      metering: {
        lease_s: believed_ms / 1000,
        checkpoint_s: checkpoint_ms / 1000,
        sweep_s: sweep_ms / 1000,
        currency: "USD",
      },
      grant_ms: () => 3_000,
      clock: this.clock,
      random: chance.next,
      batches: { batch_commands_max: plan.batch_commands_max },
    });
    if (believed_ms !== lease_ms) recovery({ ledger, clock: this.clock }, { sweep_ms, lease_ms, recovered_max: 200 });
  }

  get serial(): number {
    return this.index + 10 * this.life;
  }

  get name(): string {
    return this.life === 0 ? `${this.index}` : `${this.index} (life ${this.life + 1})`;
  }

  /**
   * Names the node's next message about a subject, `about`. The name consists of the node, the subject and a number, so
   * that it stays the same in a replay that leaves out other messages.
   */
  nextMessage(about: string): string {
    const number = (this.#messages.get(about) ?? 0) + 1;
    this.#messages.set(about, number);
    return `${this.serial}.${about}.${number}`;
  }

  /** Whether the node has not crashed, and its timers run. */
  get runs(): boolean {
    return this.clock.runs;
  }

  get isIdle(): boolean {
    if (this.clock.crashed) return true;
    return this.underway === 0 && this.open === 0 && this.admission.waitingSettlements() === 0;
  }
}

/** Sends the store the true lease, while the node believes in another; the node's own sweeps find nothing. */
function withLease(ledger: NodeLedger): NodeLedger {
  return {
    run: (commands) =>
      ledger.run(commands.map((command) => ("lease_ms" in command ? { ...command, lease_ms: lease_ms } : command))),
    recover: (_, range) => ledger.recover(0, range),
  };
}
