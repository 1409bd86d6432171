// The rules of budgets, taken out one at a time (docs/design/metering.md, The nine rules), each with the violation in which
// a history without it must end.

import type { Command, LedgerAnswer } from "../../src/core/store/ledger.ts";
import type { ModelPeople, OwnLimits } from "../core/store/budget-model.ts";
import type { Mutation } from "./mutations.ts";
import { countingIn, countingOthers, ledgerOf, OneByOne, relievedByExtra, unlimited } from "./one-by-one.ts";

/** Breaks rule 2: a request whose key, person or team is limited is admitted by what its organization has left. */
class LooksAtTheOrganizationAlone extends OneByOne {
  protected override one(command: Command): LedgerAnswer {
    const own = this.organizations.get(command.organizationId)?.own;
    if (command.verb !== "admit" || !own) return super.one(command);
    const limits = new Map([...own.limits.keys()].map((id) => [id, unlimited]));
    return this.under({ ...own, limits }, command);
  }
}

/** Breaks rule 3: a running request keeps the limits of its admission when they are lowered. */
export class KeepsTheBudgetOfTheAdmission extends OneByOne {
  readonly #admittedUnder = new Map<string, OwnLimits>();

  protected override one(command: Command): LedgerAnswer {
    const own = this.organizations.get(command.organizationId)?.own;
    if (command.verb !== "admit") return this.under(this.#admittedUnder.get(command.requestId) ?? own, command);
    if (own && !this.holds.has(command.requestId)) this.#admittedUnder.set(command.requestId, own);
    return super.one(command);
  }
}

/** Breaks rule 5: the running requests of a key that changes its team move to the new team, too. */
class TakesAlongWhatRuns extends OneByOne {
  protected override one(command: Command): LedgerAnswer {
    const hold = command.verb === "settle" ? this.holds.get(command.requestId) : undefined;
    const subjects = this.organizations
      .get(command.organizationId)
      ?.subjectsOf?.(hold?.facts.keyId ?? "", hold?.facts.model ?? "");
    if (hold && subjects) hold.own = this.budgets.of(subjects, hold.windows);
    return super.one(command);
  }
}

/** Breaks rule 2: extra usage counts in no limit of a key or a team. */
const ExtraEscapes = relievedByExtra(() => true);

/** Breaks rule 3: a growth looks at the organization's room alone, and counts for the organization alone. */
const GrowsBesideTheBudget = countingIn("grow", () => false);

/** Breaks rule 5: a settlement leaves the team's hold behind. */
const ForgetsTheTeam = countingIn("settle", ({ subject }) => subject === "key");

/** Breaks rule 2: each key of a person has the person's limits for itself. */
const CountsEachKeyOfAPerson = countingOthers(
  (subjectsOf) => (keyId, model) =>
    subjectsOf(keyId, model).map((one) =>
      one.subject !== "person" || one.models !== undefined
        ? one
        : {
            ...{ id: `${one.id} with ${keyId}`, subject: one.subject },
            get limits() {
              return one.limits;
            },
          },
    ),
);

/** Breaks rule 5: the usage of a person who joins another organization moves there, too. */
class TakesUseAlong extends OneByOne {
  readonly #members = new Map<string, ModelPeople["memberships"]>();

  protected override one(command: Command): LedgerAnswer {
    const left: string[] = [];
    const joined: string[] = [];
    for (const [organizationId, { own }] of this.organizations) {
      const [before, now] = [this.#members.get(organizationId), own?.people?.memberships];
      if (before && now && before !== now) {
        left.push(...[...before.keys()].filter((id) => !now.has(id)));
        joined.push(...[...now.keys()].filter((id) => before.get(id) !== now.get(id)));
      }
      if (now) this.#members.set(organizationId, now);
    }
    for (const from of left)
      for (const to of joined) if (from !== to && from.split(" ")[1] === to.split(" ")[1]) this.#carry(from, to);
    return super.one(command);
  }

  #carry(from: string, to: string): void {
    for (const { kind, startsAt_ms, total } of this.budgets.windows(from)) {
      const there = this.budgets.windows(to).find((one) => one.kind === kind && one.startsAt_ms === startsAt_ms);
      if (!there) continue;
      there.total.used += total.used;
      total.used = 0;
    }
  }
}

/** Breaks rule 5: a person who moves to another team has used nothing there. */
class BeginsAnewInATeam extends OneByOne {
  readonly #teams = new Map<string, string | null>();

  protected override one(command: Command): LedgerAnswer {
    for (const [id, team] of this.organizations.get(command.organizationId)?.own?.people?.memberships ?? []) {
      if (this.#teams.has(id) && this.#teams.get(id) !== team)
        for (const { total } of this.budgets.windows(id)) total.used = 0;
      this.#teams.set(id, team);
    }
    return super.one(command);
  }
}

export const budgetMutations: Record<string, Mutation> = {
  "a key's own limit is not looked at": { rule: 2, defects: ledgerOf(LooksAtTheOrganizationAlone), seenAs: ["limit"] },
  "extra usage escapes a key's limit": { rule: 2, defects: ledgerOf(ExtraEscapes), seenAs: ["sums"] },
  "a growth is not counted in a key's limit": { rule: 3, defects: ledgerOf(GrowsBesideTheBudget), seenAs: ["sums"] },
  "who runs keeps the limits that its key had": {
    rule: 3,
    under: ["budget"],
    defects: ledgerOf(KeepsTheBudgetOfTheAdmission),
    seenAs: ["limit", "plans"],
  },
  "a key that changes its team takes along what runs": {
    rule: 5,
    under: ["team"],
    defects: ledgerOf(TakesAlongWhatRuns),
    seenAs: ["sums"],
  },
  "a settlement leaves a team's hold behind": { rule: 5, defects: ledgerOf(ForgetsTheTeam), seenAs: ["sums"] },
  "each key of a person has her limits for itself": {
    rule: 2,
    defects: ledgerOf(CountsEachKeyOfAPerson),
    seenAs: ["sums", "limit"],
  },
  "a person who moves to another team takes along what runs": {
    rule: 5,
    under: ["person"],
    defects: ledgerOf(TakesAlongWhatRuns),
    seenAs: ["sums"],
  },
  "a person who moves to another team begins anew": {
    rule: 5,
    under: ["person"],
    defects: ledgerOf(BeginsAnewInATeam),
    seenAs: ["sums"],
  },
  "a person who joins another organization takes her use along": {
    rule: 5,
    under: ["person"],
    defects: ledgerOf(TakesUseAlong),
    seenAs: ["sums"],
  },
};
