// The rules of limits for models, taken out one at a time (docs/design/metering.md, The nine rules), each with the
// violation in which a history without it must end.

import type { Command, LedgerAnswer } from "../../src/core/store/ledger.ts";
import type { ModelSubject, OwnLimits } from "../core/store/budget-model.ts";
import type { LedgerModel, ModelOrganization } from "../core/store/ledger-model.ts";
import { CommandByCommand, KeepsTheBudgetOfTheAdmission, ledgerOf, unlimited } from "./budget-mutations.ts";
import { isForModels } from "./models.ts";
import type { Mutation } from "./mutations.ts";

/** Breaks rule 2: an admission looks at no limit for models. */
class LooksAtNoPattern extends CommandByCommand {
  protected override one(command: Command): LedgerAnswer {
    const own = this.organizations.get(command.organizationId)?.own;
    return command.verb === "admit" && own ? this.under(withoutModels(own), command) : super.one(command);
  }
}

function withoutModels(own: OwnLimits): OwnLimits {
  const limits = [...own.limits].map(([id, limits]) => [id, isForModels(id) ? unlimited : limits] as const);
  return { ...own, limits: new Map(limits) };
}

/** Counts each request in other subjects than its own. */
abstract class CountsInOthers extends CommandByCommand {
  protected abstract among(subjects: readonly ModelSubject[]): readonly ModelSubject[];
  /** The model by which a request's subjects are looked up. */
  protected modelOf(model: string): string {
    return model;
  }
  protected override one(command: Command): LedgerAnswer {
    const organization = this.organizations.get(command.organizationId);
    const { subjectsOf } = organization ?? {};
    if (!organization || !subjectsOf) return super.one(command);
    const others: ModelOrganization = {
      ...organization,
      subjectsOf: (keyId, model) => this.among(subjectsOf(keyId, this.modelOf(model))),
    };
    this.organizations.set(command.organizationId, others);
    const answer = super.one(command);
    this.organizations.set(command.organizationId, organization);
    return answer;
  }
}

/** Breaks rule 2: a limit for one model counts requests for another. */
class CountsAnotherModel extends CountsInOthers {
  protected override among(subjects: readonly ModelSubject[]): readonly ModelSubject[] {
    return subjects;
  }
  protected override modelOf(): string {
    return "acme/writer-1";
  }
}

/**
 * Breaks rule 2: of the limits for models of one subject, only the one whose pattern is the model's own name counts.
 */
class CountsOnePattern extends CountsInOthers {
  protected override among(subjects: readonly ModelSubject[]): readonly ModelSubject[] {
    return subjects.filter(({ models }) => !models?.endsWith("/*"));
  }
}

/** Breaks rule 2: only a key's limits for models count, and no team's, person's or organization's. */
class CountsPatternsOfKeys extends CountsInOthers {
  protected override among(subjects: readonly ModelSubject[]): readonly ModelSubject[] {
    return subjects.filter(({ models, subject }) => models === undefined || subject === "key");
  }
}

/**
 * Breaks rule 2: extra usage does not count in an organization's limits for models, just as it does not count in the
 * limits of its plan.
 */
class ExtraRelievesPatterns extends CommandByCommand {
  protected override one(command: Command): LedgerAnswer {
    const answer = super.one(command);
    const hold = this.holds.get(command.requestId);
    if (command.verb !== "admit" || hold?.source !== "extra") return answer;
    const relieved = hold.own.filter(({ subject }) => subject.subject === "organization");
    for (const { windows } of relieved) for (const { total } of windows) total.held -= hold.nanos;
    hold.own = hold.own.filter((one) => !relieved.includes(one));
    return answer;
  }
}

/** Breaks rule 3: a growth is counted in no limit for models. */
class GrowsBesidePatterns extends CommandByCommand {
  protected override one(command: Command): LedgerAnswer {
    const hold = command.verb === "grow" ? this.holds.get(command.requestId) : undefined;
    if (!hold) return super.one(command);
    const { own } = hold;
    hold.own = own.filter(({ subject }) => subject.models === undefined);
    const answer = super.one(command);
    hold.own = own;
    return answer;
  }
}

/** Breaks rule 5: a settlement leaves the hold behind in a limit for models. */
class ForgetsPatterns extends CommandByCommand {
  protected override one(command: Command): LedgerAnswer {
    const hold = command.verb === "settle" ? this.holds.get(command.requestId) : undefined;
    if (hold) hold.own = hold.own.filter(({ subject }) => subject.models === undefined);
    return super.one(command);
  }
}

const mutant = (model: unknown) => ledgerOf(model as typeof LedgerModel);

export const modelMutations: Record<string, Mutation> = {
  "limits for models are not looked at": { rule: 2, defects: mutant(LooksAtNoPattern), seenAs: ["limit", "refusal"] },
  "a limit for one model counts another": {
    rule: 2,
    defects: mutant(CountsAnotherModel),
    seenAs: ["sums", "limit", "refusal"],
  },
  "of a subject the prefix of a model does not count": {
    rule: 2,
    defects: mutant(CountsOnePattern),
    seenAs: ["sums", "limit"],
  },
  "limits for models count for keys alone": {
    rule: 2,
    defects: mutant(CountsPatternsOfKeys),
    seenAs: ["sums", "limit"],
  },
  "extra usage relieves an organization's limits for models": {
    rule: 2,
    defects: mutant(ExtraRelievesPatterns),
    seenAs: ["sums"],
  },
  "a growth is not counted for its model": { rule: 3, defects: mutant(GrowsBesidePatterns), seenAs: ["sums"] },
  "who runs keeps the limits that its model had": {
    rule: 3,
    under: ["models"],
    defects: mutant(KeepsTheBudgetOfTheAdmission),
    seenAs: ["limit", "plans"],
  },
  "a settlement leaves its model's hold behind": { rule: 5, defects: mutant(ForgetsPatterns), seenAs: ["sums"] },
};
