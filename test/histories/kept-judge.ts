// Judges the guarantees of idempotency keys: each key has one answer, the same for all who repeat the request, charged
// once at most; and its run continues after its client has disconnected.

import type { Fault } from "../../src/core/inference/fault.ts";
import type { Ending } from "../../src/core/usage/record.ts";
import type { Fate } from "../../src/features/responses/follower.ts";
import { lateIdOf } from "../core/store/ledger-model.ts";
import type { Account } from "./account.ts";
import type { Counts } from "./counts.ts";
import type { Asked } from "./kept-client.ts";
import type { Say } from "./rules.ts";
import { isHindered, retry_ms, wasSet } from "./verdict.ts";
import type { World } from "./world.ts";

interface Parts {
  world: World;
  accounts: ReadonlyMap<string, Account>;
  counts: Counts;
  say: Say;
  flushes(): number;
}

export class KeptJudge {
  readonly #parts: Parts;
  readonly #asking = new Set<Asked>();
  /**
   * The key is the id of a run whose node is gone; the value is the time at which a client first read of that failure.
   */
  readonly #buried = new Map<string, number>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  asks(asked: Asked): void {
    this.#asking.add(asked);
  }

  isAnswered(asked: Asked): void {
    this.#asking.delete(asked);
  }

  /** Judges the end of a run whose answer is kept (stored for repeats). */
  ended({ plan }: Account, ending: Ending, { isLeft, isKept }: { isLeft: boolean; isKept: boolean }): void {
    const { counts, say } = this.#parts;
    if (isLeft && ending.outcome === "completed") counts["kept answers that went on without their client"] += 1;
    if (isKept && ending.outcome === "cancelled") say("detached", `${plan.id} was kept, and ended with its client`);
  }

  repeated({ plan, at_ms }: Asked, runId: string, { text, end }: { text: string; end: Fate | "whole" }): void {
    const { world, accounts, counts, say } = this.#parts;
    world.tell(() => `${plan.id} repeats ${runId}, ${end}: "${text}"`);
    const run = accounts.get(runId);
    if (!run) {
      say("repeat", `${plan.id} repeats ${runId}, which never ran`);
      return;
    }
    counts["answers that repeated another"] += 1;
    if (!run.ending || at_ms < run.endedAt_ms) counts["answers that were joined while they were written"] += 1;
    if (!run.text.startsWith(text)) say("repeat", `${plan.id} got "${text}", and ${runId} was "${run.text}"`);
    if (end === "whole" && text !== run.text)
      say("repeat", `${plan.id} got "${text}" as the whole of ${runId}, which was "${run.text}"`);
    const buried_ms = this.#buried.get(runId);
    if (buried_ms !== undefined && at_ms > buried_ms && run.setBackAt_ms === null)
      say("repeat", `${plan.id} repeats ${runId}, whose failure was read before`);
    if (end === "lost") this.#lost(plan.id, runId);
    if (end !== "dead") return;
    counts["repeats that ended with a node that was gone"] += 1;
    this.#buried.set(runId, Math.min(buried_ms ?? Number.POSITIVE_INFINITY, world.time.now_ms));
  }

  /** Judges a background response that has ended. `response` is null if the response is gone. */
  fetched({ plan }: Asked, runId: string, response: { status: string; output: unknown } | null): void {
    const { world, accounts, counts, say } = this.#parts;
    world.tell(() => `${plan.id} fetches the response of ${runId}: ${JSON.stringify(response)}`);
    const run = accounts.get(runId);
    if (!run) {
      say("repeat", `${plan.id} fetches the response of ${runId}, which never ran`);
      return;
    }
    counts["background responses that were fetched with their end"] += 1;
    if (response === null && run.setBackAt_ms === null)
      say("repeat", `${plan.id} found the response of ${runId} no longer`);
    if (response?.status === "completed" && response.output !== run.text)
      say("repeat", `${plan.id} got "${response.output}" as ${runId}, which was "${run.text}"`);
  }

  refused({ plan, node, at_ms }: Asked, { code, message, cause }: Fault): void {
    const { world, say } = this.#parts;
    world.tell(() => `${plan.id} with the key of ${plan.first} is refused: ${code}`);
    if (code === "idempotency_answer_lost") this.#lost(plan.id, plan.first);
    else if (code !== "storage_unavailable") say("available", `${plan.id} was refused as ${code}: ${message} ${cause}`);
    else if (!isHindered(world, node, at_ms - retry_ms) && !this.#isWriterBack(plan.first, at_ms))
      say("available", `${plan.id} was refused as ${code}, and nothing stood in its way`);
  }

  /**
   * Whether the run that writes a key's answer may have got its grant just when another node gave the key up: the run's
   * node was frozen before that, or its claim seemed old because the store's clock was set since.
   */
  #isWriterBack(first: string, at_ms: number): boolean {
    const { world, accounts } = this.#parts;
    const run = accounts.get(first);
    if (!run) return false;
    // The key was claimed before `askedAt_ms`, because the run asks for its admission only after the claim.
    const since_ms = run.askedAt_ms - retry_ms;
    const seemsOld = wasSet(world, since_ms) && at_ms <= (run.admittedAt_ms ?? Number.POSITIVE_INFINITY);
    return seemsOld || isHindered(world, run.node, since_ms);
  }

  /**
   * Judges that a log was lost. That is allowed only if the stores had a fault, or a fault kept a writer from them; a
   * node that is gone is no reason.
   */
  #lost(id: string, first: string): void {
    const { world, accounts, counts, say, flushes } = this.#parts;
    counts["repeats that were refused for good, as the log was lost"] += 1;
    const writers = [...accounts.values()].filter(({ plan }) => plan.first === first || plan.id === first);
    const troubles = [
      world.storeTroubles,
      world.rateTroubles,
      world.steps,
      ...writers.map(({ node }) => node.troubles),
    ];
    if (flushes() === 0 && troubles.every(({ length }) => length === 0))
      say("repeat", `${id} was refused for good, and nothing had befallen the log of ${first}`);
  }

  finish(): void {
    const { accounts, counts, say } = this.#parts;
    for (const { plan, node } of this.#asking)
      if (!node.clock.crashed) say("available", `${plan.id} was never answered, though its node runs`);
    const keyed = [...accounts.values()].filter(({ plan }) => plan.repeats !== null);
    for (const [first, runs] of Map.groupBy(keyed, ({ plan }) => plan.first)) {
      if (runs.length > 1)
        counts["repeats that ran anew, as their first was refused, failed or gone"] += runs.length - 1;
      // A failover may have forgotten the key's claim.
      if (runs.some(({ setBackAt_ms }) => setBackAt_ms !== null)) continue;
      // A refused run does not count: a late copy of its admission may have been carried out and charged (verdict.ts,
      // judgeRecovery).
      const charged = runs.filter((run) => !run.refused && this.#costOf(run) > 0).map(({ plan }) => plan.id);
      if (charged.length > 1) say("key", `the key of ${first} was charged for ${charged.join(" and ")}`);
    }
  }

  /** The charge for a run, without the uncharged part, for which the run's limits had no room. */
  #costOf({ plan: { id } }: Account): number {
    const { records } = this.#parts.world.store.model;
    const both = [records.get(id), records.get(lateIdOf(id))];
    return both.reduce((sum, record) => sum + (record?.charged ?? 0), 0);
  }
}
