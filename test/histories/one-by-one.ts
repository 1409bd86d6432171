// Stores for mutations: each carries out one command at a time, so that a mutation can act before or after each.

import type { ClockRange, Command, LedgerAnswer, UsageLimits } from "../../src/core/store/ledger.ts";
import type { ModelSubject, OwnLimits } from "../core/store/budget-model.ts";
import { LedgerModel, type ModelOrganization } from "../core/store/ledger-model.ts";
import type { StoreDefects } from "./store.ts";

export const unlimited: UsageLimits = { session: null, week: null, month: null, concurrentRequests: null };

export const ledgerOf = (model: NonNullable<StoreDefects["model"]>) => ({ store: { model } });

type Hold = LedgerModel["holds"] extends Map<string, infer One> ? One : never;
type SubjectsOf = NonNullable<ModelOrganization["subjectsOf"]>;

/** Carries out one command at a time, in the order of a batch. */
export abstract class OneByOne extends LedgerModel {
  override run(commands: readonly Command[]): LedgerAnswer[] {
    const answers: LedgerAnswer[] = [];
    for (const verb of ["settle", "grow", "admit", "checkpoint"] as const)
      for (const [index, command] of commands.entries()) if (command.verb === verb) answers[index] = this.one(command);
    return answers;
  }

  protected one(command: Command): LedgerAnswer {
    return super.run([command])[0]!;
  }

  /** The windows to which a hold is billed. */
  protected billed(requestId: string) {
    const hold = this.holds.get(requestId);
    if (!hold) return [];
    const { session, week, month, extra } = hold.windows;
    return hold.source === "extra" ? [extra] : [session, week, month];
  }

  /** Carries out a command as if its organization were changed in this way; null: as it is. */
  protected as(command: Command, changed: (organization: ModelOrganization) => ModelOrganization | null): LedgerAnswer {
    const organization = this.organizations.get(command.organizationId);
    const instead = organization ? changed(organization) : null;
    if (!organization || !instead) return super.run([command])[0]!;
    this.organizations.set(command.organizationId, instead);
    const answer = super.run([command])[0]!;
    this.organizations.set(command.organizationId, organization);
    return answer;
  }

  /** Carries out a command as if these limits were set. */
  protected under(own: OwnLimits | undefined, command: Command): LedgerAnswer {
    return this.as(command, (organization) => (own ? { ...organization, own } : null));
  }
}

/** A store that carries out commands of one verb by other limits than theirs. */
export const byOtherLimits = (verbs: readonly Command["verb"][], changed: (limits: UsageLimits) => UsageLimits) =>
  class extends OneByOne {
    protected override one(command: Command): LedgerAnswer {
      if (command.verb === "checkpoint" || !verbs.includes(command.verb)) return super.one(command);
      return super.one({ ...command, limits: changed(command.limits) });
    }
  };

/** A store that counts a growth or a settlement in some of the request's limited subjects alone. */
export const countingIn = (verb: "grow" | "settle", isCounted: (subject: ModelSubject) => boolean) =>
  class extends OneByOne {
    protected override one(command: Command): LedgerAnswer {
      const hold = command.verb === verb ? this.holds.get(command.requestId) : undefined;
      if (!hold) return super.one(command);
      const { own } = hold;
      hold.own = own.filter(({ subject }) => isCounted(subject));
      const answer = super.one(command);
      hold.own = own;
      return answer;
    }
  };

/** A store in which extra usage does not count in the limits of these subjects. */
export const relievedByExtra = (isRelieved: (subject: ModelSubject) => boolean) =>
  class extends OneByOne {
    protected override one(command: Command): LedgerAnswer {
      const answer = super.one(command);
      const hold = this.holds.get(command.requestId);
      if (command.verb !== "admit" || hold?.source !== "extra") return answer;
      const relieved = hold.own.filter(({ subject }) => isRelieved(subject));
      for (const { windows } of relieved) for (const { total } of windows) total.held -= hold.nanos;
      hold.own = hold.own.filter((one) => !relieved.includes(one));
      return answer;
    }
  };

/** A store that counts each request in other subjects than its own. */
export const countingOthers = (others: (own: SubjectsOf) => SubjectsOf) =>
  class extends OneByOne {
    protected override one(command: Command): LedgerAnswer {
      return this.as(command, ({ subjectsOf, ...organization }) =>
        subjectsOf ? { ...organization, subjectsOf: others(subjectsOf) } : null,
      );
    }
  };

/** A store that changes holds before it recovers them. */
export const recovering = (changed: (hold: Hold, now_ms: number) => void) =>
  class extends LedgerModel {
    override recover(limit: number, range?: ClockRange): number {
      if (limit > 0) for (const hold of this.holds.values()) changed(hold, this.now_ms());
      return super.recover(limit, range);
    }
  };
