// The rules of raises (temporary increases of limits), taken out one at a time (docs/design/usage.md, Raises), each with
// the violation in which a history without it must end.

import type { Command, LedgerAnswer } from "../../src/core/store/ledger.ts";
import type { ModelRaise, OwnLimits } from "../core/store/budget-model.ts";
import type { Mutation } from "./mutations.ts";
import { ledgerOf, OneByOne } from "./one-by-one.ts";
import type { StoreDefects } from "./store.ts";

type Raises = NonNullable<OwnLimits["raises"]>;

/** A store that goes by other raises than those that are set. */
abstract class ByOtherRaises extends OneByOne {
  protected abstract raisesOf(raises: Raises, organizationId: string, requestId: string): Raises;

  protected override one(command: Command): LedgerAnswer {
    const { organizationId, requestId } = command;
    return this.as(command, (organization) => {
      const raises = organization.own?.raises;
      if (!raises) return null;
      const others = this.raisesOf(raises, organizationId, requestId);
      const own = { ...organization.own!, raises: others };
      return { ...organization, own, raise: others.get(organizationId) ?? null };
    });
  }
}

const endless = (raises: Raises): Raises => new Map([...raises].map(([id, raise]) => [id, endlessly(raise)]));
const endlessly = (raise: ModelRaise): ModelRaise => ({ ...raise, until_ms: Number.POSITIVE_INFINITY });

class EndsNone extends ByOtherRaises {
  protected override raisesOf(raises: Raises): Raises {
    return endless(raises);
  }
}

class EndsNoneOfAnOrganization extends ByOtherRaises {
  protected override raisesOf(raises: Raises, organizationId: string): Raises {
    const raise = raises.get(organizationId);
    return raise ? new Map(raises).set(organizationId, endlessly(raise)) : raises;
  }
}

/** The defect: a raise counts for a request until the request ends, if it was admitted under the raise. */
class EndsNoneOfWhatRuns extends ByOtherRaises {
  readonly #admittedUnder = new Map<string, Raises>();

  protected override raisesOf(raises: Raises, _: string, requestId: string): Raises {
    const running = this.#admittedUnder.get(requestId);
    if (!running) this.#admittedUnder.set(requestId, endless(raises));
    return running ?? raises;
  }
}

class KnowsNone extends ByOtherRaises {
  protected override raisesOf(): Raises {
    return new Map();
  }
}

/** The defect: a raise of a key counts for its person and its team as well, and the other way round. */
class RaisesOthersToo extends ByOtherRaises {
  protected override raisesOf(raises: Raises, organizationId: string): Raises {
    const { limits } = this.organizations.get(organizationId)!.own!;
    const [raise] = [...raises].flatMap(([id, one]) => (id === organizationId ? [] : [one]));
    return raise ? new Map([...raises, ...[...limits.keys()].map((id) => [id, raise] as const)]) : raises;
  }
}

/** The defect: a raise of the organization counts for the keys, people and teams in it. */
class RaisesAllInAnOrganization extends ByOtherRaises {
  protected override raisesOf(raises: Raises, organizationId: string): Raises {
    const { limits } = this.organizations.get(organizationId)!.own!;
    const raise = raises.get(organizationId);
    return raise ? new Map([...[...limits.keys()].map((id) => [id, raise] as const), ...raises]) : raises;
  }
}

const mutationOf = (model: NonNullable<StoreDefects["model"]>, seenAs: Mutation["seenAs"]): Mutation => ({
  rule: "docs/design/usage.md, Raises",
  under: ["raise"],
  defects: ledgerOf(model),
  seenAs,
});

export const raiseMutations: Readonly<Record<string, Mutation>> = {
  "a raise does not end": mutationOf(EndsNone, ["refusal", "limit"]),
  "an organization's raise does not end": mutationOf(EndsNoneOfAnOrganization, ["refusal", "limit"]),
  "a raise counts as long as what was admitted under it": mutationOf(EndsNoneOfWhatRuns, ["limit", "plans", "refusal"]),
  "a raise is not looked at": mutationOf(KnowsNone, ["refusal"]),
  "a raise of a key, a person or a team counts for the others, too": mutationOf(RaisesOthersToo, ["limit", "refusal"]),
  "an organization's raise counts for all in it": mutationOf(RaisesAllInAnOrganization, ["limit", "refusal"]),
  "a node does not hear that a raise has ended": {
    rule: "docs/design/usage.md, Raises",
    under: ["raise"],
    defects: { hearsOfNoEnd: true },
    seenAs: ["plans"],
  },
};
