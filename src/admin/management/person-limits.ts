/** The limits that count for a person in each organization, and how much of them is used. */
import Type from "typebox";
import type { Value } from "../../core/schema/codec.ts";
import { noBudget } from "../../core/store/budget.ts";
import { id, Limits } from "../store/shapes.ts";
import type { Facts } from "./command.ts";
import type { ManagementContext } from "./context.ts";
import { limitsInWords } from "./limits.ts";
import { raiseFacts, raiseNow } from "./raise.ts";
import { examples } from "./shapes.ts";
import { exampleStanding, standing, standingFacts, standingShown } from "./standing.ts";

export const PersonLimits = Type.Object(
  {
    organization_id: id("org"),
    organization: Type.String({ description: "The organization's slug." }),
    is_own: Type.Boolean({
      description: "True: set for this person. False: those of the person's team or organization for its members.",
    }),
    limits: Limits,
    standing: standing(),
    raise: raiseNow(),
  },
  { $id: "PersonLimits", description: "All keys and sign-ins of the person in this organization share them." },
);
export type PersonLimits = Value<typeof PersonLimits>;

export const exampleLimits: PersonLimits = {
  organizationId: examples.organization,
  organization: "acme",
  isOwn: true,
  limits: { ...noBudget, week: 2_000_000_000 },
  standing: exampleStanding,
  raise: null,
};

/** The limits that count for a person, in each organization that the actor sees. */
export async function limitsOf(context: ManagementContext, personId: string): Promise<PersonLimits[]> {
  const all = (await context.people.memberBudgets([personId])).get(personId) ?? [];
  const seen = await context.withSlugs(all.filter(({ organizationId }) => context.isInSight(organizationId)));
  const members = seen.map(({ memberId }) => memberId);
  const [currency, standings, raises] = await Promise.all([
    context.currency(),
    context.standings.standings(members),
    context.administration.raises(members),
  ]);
  return seen.map(({ memberId, organizationId, organization, isOwn, budget }) => {
    const now = standings.get(memberId);
    return {
      organizationId,
      organization,
      isOwn,
      limits: budget,
      standing: now ? standingShown(now, currency) : null,
      raise: raises.get(memberId) ?? null,
    };
  });
}

export function limitFacts(all: readonly PersonLimits[]): Facts {
  return all.flatMap(({ organization, isOwn, limits, standing, raise }) => [
    [`limits in ${organization}`, `${limitsInWords(limits)}${isOwn ? "" : " (of its members)"}`] as const,
    ...[...raiseFacts(raise), ...standingFacts(standing)].map(
      ([name, value]) => [`${name} in ${organization}`, value] as const,
    ),
  ]);
}
