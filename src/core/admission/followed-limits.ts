/**
 * The limits that apply to one request, from before its admission is sent: the plan of its organization, whose limits
 * are sent with its commands, and those that the ledger itself reads of the organization, the team, the person and the
 * key (docs/design/usage.md, Limits that change).
 */
import type { Plan } from "../store/plan.ts";
import type { LimitChanges } from "./limit-changes.ts";

/** One immutable reading of the limits: the same object while none of them changed. */
export interface Limits {
  readonly plan: Plan;
}

/** A class, because closures would be made again for each request (docs/design/runtime.md, Bun as a server). */
export class FollowedLimits {
  /** The limits under which the request is admitted. */
  readonly first: Limits;
  readonly #planNow: () => Plan;
  readonly #changes: LimitChanges;
  #subjects: readonly string[] = [];
  #now: Limits;
  #edition: number;

  /** `planNow`: the organization's plan at each moment, the same object while nothing of it changed. */
  constructor(plan: Plan, planNow: () => Plan, changes: LimitChanges) {
    this.first = { plan };
    this.#now = this.first;
    this.#planNow = planNow;
    this.#changes = changes;
    this.#edition = changes.edition;
  }

  /**
   * Tells which subjects' limits apply to the request: the ids of its organization, its key, its key's team in the
   * ledger, and its key's person.
   */
  countsIn(subjects: readonly string[]): void {
    this.#subjects = subjects;
  }

  now(): Limits {
    const plan = this.#planNow();
    const { edition } = this.#changes;
    if (plan === this.#now.plan && edition === this.#edition) return this.#now;
    const isSame = plan === this.#now.plan && !this.#changes.concern(this.#subjects, this.#edition);
    this.#edition = edition;
    if (!isSame) this.#now = { plan };
    return this.#now;
  }
}
