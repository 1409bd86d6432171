// Stores for mutations (deliberate defects): each carries out one command at a time, so that a mutation can act before
// or after any command.

import type { Command, LedgerAnswer, UsageLimits } from "../../src/core/store/ledger.ts";
import type { ModelSubject } from "../core/store/budget-model.ts";
import { LedgerModel } from "../core/store/ledger-model.ts";
import type { StoreDefects } from "./store.ts";

export const unlimited: UsageLimits = { session: null, week: null, month: null, concurrentRequests: null };

export const ledgerOf = (model: NonNullable<StoreDefects["model"]>) => ({ store: { model } });

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
}

/** A store that carries out commands of some verbs under limits other than the command's. */
export const byOtherLimits = (verbs: readonly Command["verb"][], changed: (limits: UsageLimits) => UsageLimits) =>
  class extends OneByOne {
    protected override one(command: Command): LedgerAnswer {
      if (command.verb === "checkpoint" || !verbs.includes(command.verb)) return super.one(command);
      return super.one({ ...command, limits: changed(command.limits) });
    }
  };

/** A store that counts a growth or a settlement only in some of the request's limited subjects. */
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
