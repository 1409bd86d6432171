// The rules of limits for models, taken out one at a time (docs/design/metering.md, The nine rules), each with the
// violation in which a history without it must end.

import type { Command, LedgerAnswer } from "../../src/core/store/ledger.ts";
import type { ModelSubject, OwnLimits } from "../core/store/budget-model.ts";
import { KeepsTheBudgetOfTheAdmission } from "./budget-mutations.ts";
import { isForModels } from "./models.ts";
import type { Mutation } from "./mutations.ts";
import { countingIn, countingOthers, ledgerOf, OneByOne, relievedByExtra, unlimited } from "./one-by-one.ts";

/** Breaks rule 2: an admission looks at no limit for models. */
class LooksAtNoPattern extends OneByOne {
  protected override one(command: Command): LedgerAnswer {
    const own = this.organizations.get(command.organizationId)?.own;
    return command.verb === "admit" && own ? this.under(withoutModels(own), command) : super.one(command);
  }
}

function withoutModels(own: OwnLimits): OwnLimits {
  const limits = [...own.limits].map(([id, limits]) => [id, isForModels(id) ? unlimited : limits] as const);
  return { ...own, limits: new Map(limits) };
}

/** Breaks rule 2: a limit for one model counts requests for another. */
const CountsAnotherModel = countingOthers((subjectsOf) => (keyId) => subjectsOf(keyId, "acme/writer-1"));

/**
 * Breaks rule 2: of the limits for models of one subject, only the one whose pattern is the model's own name counts.
 */
const CountsOnePattern = countingOthers(
  (subjectsOf) => (keyId, model) => subjectsOf(keyId, model).filter(({ models }) => !models?.endsWith("/*")),
);

/** Breaks rule 2: only a key's limits for models count, and no team's, person's or organization's. */
const CountsPatternsOfKeys = countingOthers(
  (subjectsOf) => (keyId, model) =>
    subjectsOf(keyId, model).filter(({ models, subject }) => models === undefined || subject === "key"),
);

/**
 * Breaks rule 2: extra usage does not count in an organization's limits for models, just as it does not count in the
 * limits of its plan.
 */
const ExtraRelievesPatterns = relievedByExtra(({ subject }) => subject === "organization");

const isForAny = ({ models }: ModelSubject) => models === undefined;

/** Breaks rule 3: a growth is counted in no limit for models. */
const GrowsBesidePatterns = countingIn("grow", isForAny);

/** Breaks rule 5: a settlement leaves the hold behind in a limit for models. */
const ForgetsPatterns = countingIn("settle", isForAny);

export const modelMutations: Record<string, Mutation> = {
  "limits for models are not looked at": { rule: 2, defects: ledgerOf(LooksAtNoPattern), seenAs: ["limit", "refusal"] },
  "a limit for one model counts another": {
    rule: 2,
    defects: ledgerOf(CountsAnotherModel),
    seenAs: ["sums", "limit", "refusal"],
  },
  "of a subject the prefix of a model does not count": {
    rule: 2,
    defects: ledgerOf(CountsOnePattern),
    seenAs: ["sums", "limit"],
  },
  "limits for models count for keys alone": {
    rule: 2,
    defects: ledgerOf(CountsPatternsOfKeys),
    seenAs: ["sums", "limit"],
  },
  "extra usage relieves an organization's limits for models": {
    rule: 2,
    defects: ledgerOf(ExtraRelievesPatterns),
    seenAs: ["sums"],
  },
  "a growth is not counted for its model": { rule: 3, defects: ledgerOf(GrowsBesidePatterns), seenAs: ["sums"] },
  "who runs keeps the limits that its model had": {
    rule: 3,
    under: ["models"],
    defects: ledgerOf(KeepsTheBudgetOfTheAdmission),
    seenAs: ["limit", "plans"],
  },
  "a settlement leaves its model's hold behind": { rule: 5, defects: ledgerOf(ForgetsPatterns), seenAs: ["sums"] },
};
