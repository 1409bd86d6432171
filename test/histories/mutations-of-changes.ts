// Mutations (deliberate defects) for histories in which plans, keys, anchors and clocks change while requests run, the
// store stands still, or a failover sets it back to the past. Each removes one protection, in histories with no other
// faults.

import type { ClockRange, Command, Grow, LedgerAnswer, WindowKind } from "../../src/core/store/ledger.ts";
import type { Clock } from "../../src/core/time/clock.ts";
import { LedgerModel } from "../core/store/ledger-model.ts";
import { withCalendar } from "../core/store/windows-model.ts";
import { apart, givesUpInSilence, type Mutation, mutations } from "./mutations.ts";
import { ledgerOf, OneByOne } from "./one-by-one.ts";
import type { NodeLedger } from "./wire.ts";

/** The defect: the first organization is charged for every request, whatever organization made it. */
class KnowsOneOrganization extends LedgerModel {
  override run(commands: readonly Command[]): LedgerAnswer[] {
    return super.run(commands.map((command) => ({ ...command, organizationId: "org_1" })));
  }
}

class RecoversByTheAdmission extends LedgerModel {
  override recover(limit: number, range?: ClockRange): number {
    const before = [...this.organizations];
    for (const [id, { limits: _, ...organization }] of before) this.organizations.set(id, organization);
    const count = super.recover(limit, range);
    for (const [id, organization] of before) this.organizations.set(id, organization);
    return count;
  }
}

/** The defect: a lease that was given before the clock was set back lasts until the clock has caught up. */
class KeepsFarLeases extends LedgerModel {
  protected override clipLeases(): void {}
}

/**
 * The defect: a growth is carried out once more when another command of its request comes, and takes back nanos that
 * its node was already granted.
 */
class ReviewsAgain extends OneByOne {
  readonly #reviews = new Map<string, Grow>();
  protected override one(command: Command): LedgerAnswer {
    const review = this.#reviews.get(command.requestId);
    const hold = this.holds.get(command.requestId);
    if (review && hold) super.one({ ...review, number: hold.growth + 1 });
    if (command.verb === "grow") this.#reviews.set(command.requestId, command);
    return super.one(command);
  }
}

class AdjustsAgain extends LedgerModel {
  #times = 0;
  override adjust(entryId: string, organizationId: string, kind: WindowKind | "extra", nanos: number): number | null {
    this.#times += 1;
    const id = this.records.has(entryId) ? `${entryId} ${this.#times}` : entryId;
    return super.adjust(id, organizationId, kind, nanos);
  }
}

/** The defect: a settlement counts only if the store has a hold or a record of the request. */
class SettlesOnlyWhatItKnows extends OneByOne {
  protected override one(command: Command): LedgerAnswer {
    const { requestId, verb } = command;
    if (verb === "settle" && !this.holds.has(requestId) && !this.records.has(requestId)) return { answer: "already" };
    return super.one(command);
  }
}

/** The defect: a node ignores the store's clock when it sweeps. */
const believesClock = (ledger: NodeLedger, clock: Clock): NodeLedger => ({
  ...ledger,
  recover: async (limit) => ({ ...(await ledger.recover(limit)), at: new Date(clock.now_ms()) }),
});

/** The defect: a node continues requests that the store has forgotten. */
const goesOn = (ledger: NodeLedger): NodeLedger =>
  apart(
    ledger,
    ({ verb }) => verb === "checkpoint",
    async (commands) => {
      const answers = await ledger.run(commands);
      return answers.map((answer) => (answer.answer === "gone" ? { answer: "extended" } : answer));
    },
  );

const plans = "docs/design/usage.md, Limits that change";

const changeMutations: Record<string, Mutation> = {
  "one organization is charged for all": {
    rule: "docs/design/usage.md, Windows",
    under: [],
    defects: ledgerOf(KnowsOneOrganization),
    seenAs: ["sums", "limit", "windows", "refusal", "record"],
  },
  "who runs keeps the plan of its admission": {
    rule: plans,
    under: ["plan"],
    defects: { keepsPlan: true },
    seenAs: ["plans", "limit"],
  },
  "a hold is not reviewed under another plan": {
    rule: plans,
    under: ["plan"],
    defects: { hidesChange: true },
    seenAs: ["plans"],
  },
  "a hold is not reviewed under another limit of its key or team": {
    rule: plans,
    under: ["budget"],
    defects: { hearsOf: () => false },
    seenAs: ["plans"],
  },
  "a hold is not reviewed under another limit of its team": {
    rule: plans,
    under: ["budget", "team"],
    defects: { hearsOf: (subject) => subject.startsWith("key_") },
    seenAs: ["plans"],
  },
  "a hold is not reviewed under another limit of its person": {
    rule: plans,
    under: ["person"],
    defects: { hearsOf: (subject) => !subject.startsWith("per_") },
    seenAs: ["plans"],
  },
  "a hold is not reviewed under another limit for its model": {
    rule: plans,
    under: ["models"],
    defects: { hearsOf: () => false },
    seenAs: ["plans"],
  },
  "a node does not hear that a raise has ended": {
    rule: "docs/design/usage.md, Raises",
    under: ["raise"],
    defects: { hearsOfNoEnd: true },
    seenAs: ["plans"],
  },
  "a node hears of no plan": { rule: plans, under: ["plan"], defects: { followsNobody: true }, seenAs: ["plans"] },
  "recovery charges by the limits of the admission": {
    rule: plans,
    under: ["plan", "crash"],
    defects: ledgerOf(RecoversByTheAdmission),
    seenAs: ["limit"],
  },
  "a node hears of no revocation": {
    rule: "docs/design/keys.md, Running requests end too",
    under: ["revoke"],
    defects: { followsNobody: true },
    seenAs: ["standing"],
  },
  "a new anchor counts at once": {
    rule: 9,
    under: ["anchor"],
    defects: {
      store: {
        withAnchor: (anchors, at_ms, now_ms) => [...anchors, { at_ms, weekFrom_ms: now_ms, monthFrom_ms: now_ms }],
      },
    },
    seenAs: ["windows", "sums"],
  },
  "a new calendar counts at once": {
    rule: 9,
    under: ["calendar"],
    defects: {
      store: {
        withCalendar: (anchors, calendar, now_ms) => [
          ...anchors,
          { at_ms: anchors.at(-1)!.at_ms, calendar, weekFrom_ms: now_ms, monthFrom_ms: now_ms },
        ],
      },
    },
    seenAs: ["windows", "sums"],
  },
  "a window that a change of the calendar made shorter has the whole limit": {
    rule: "docs/design/usage.md, Calendars",
    under: ["calendar"],
    defects: {
      store: {
        withCalendar: (...parts) =>
          withCalendar(...parts)?.map(({ monthBridge, weekBridge, ...one }) => ({
            ...one,
            monthBridge: monthBridge && { ...monthBridge, wholeAt_ms: undefined },
            weekBridge: weekBridge && { ...weekBridge, wholeAt_ms: undefined },
          })) ?? null,
      },
    },
    seenAs: ["limit", "refusal"],
  },
  "an operator's entry that comes twice is booked twice": {
    rule: 5,
    under: ["adjust"],
    defects: ledgerOf(AdjustsAgain),
    seenAs: ["sums"],
  },
  "a sweeper believes a clock that was set": {
    rule: 6,
    under: ["clock"],
    defects: { ledger: believesClock },
    seenAs: ["abandoned", "lease", "checkpoint"],
  },
  "a review that comes twice takes back what was granted": {
    rule: 3,
    under: ["plan"],
    defects: ledgerOf(ReviewsAgain),
    seenAs: ["grant", "plans"],
  },
  "a lease that a clock gave which was set back lasts until it has caught up": {
    rule: 6,
    under: ["clock", "crash"],
    defects: ledgerOf(KeepsFarLeases),
    seenAs: ["holds"],
  },
  "who gives up while the store stands still settles nothing": {
    rule: 5,
    under: ["stall"],
    defects: { ledger: givesUpInSilence },
    seenAs: ["abandoned", "checkpoint"],
  },
  "a node knows no deadline after a pause": {
    rule: 7,
    under: ["pause"],
    defects: { believedLease_ms: 1e9 },
    seenAs: ["lease"],
  },
  "what a failover forgot has no record in the end": {
    rule: 5,
    under: ["failover"],
    defects: ledgerOf(SettlesOnlyWhatItKnows),
    seenAs: ["record"],
  },
  "what a failover forgot goes on": {
    rule: 7,
    under: ["failover"],
    defects: { ledger: goesOn },
    seenAs: ["grant", "lease"],
  },
};

export const allMutations: Record<string, Mutation> = {
  ...mutations,
  ...changeMutations,
};
