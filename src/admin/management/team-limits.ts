/** The limits that new keys and people get by default, and limits within those of a plan. */
import Type from "typebox";
import type { Value } from "../../core/schema/codec.ts";
import { type Budget, noBudget } from "../../core/store/budget.ts";
import type { Organization } from "../../core/store/directory.ts";
import type { ManagementContext } from "./context.ts";
import { changedLimits, type LimitChanges, withinPlan } from "./limits.ts";
import { examples, id, Limits, nullable } from "./shapes.ts";
import { teamNamed } from "./team.ts";

/** Limits that an organization gives. */
export const defaultShape = ($id: string, description: string) =>
  Type.Object(
    {
      organization_id: id("org"),
      organization: Type.String(),
      limits: nullable(Limits),
      version: Type.Integer({ minimum: 1, description: "That of the organization; also sent as `etag`." }),
    },
    { $id, description },
  );
type Default = Value<ReturnType<typeof defaultShape>>;

export const exampleDefault = (limits: Budget): Default => ({
  organizationId: examples.organization,
  organization: "acme",
  limits,
  version: 3,
});

export function defaultShown({ id, slug, version }: Organization, limits: Budget | null): Default {
  return { organizationId: id, organization: slug, limits, version };
}

/** Refuses limits above those of the organization's plan. */
export async function allowed(
  { catalog }: ManagementContext,
  { plan }: Organization,
  budget: Budget,
  whose: string,
): Promise<Budget> {
  return withinPlan(budget, plan === null ? null : ((await catalog()).plans.get(plan) ?? null), whose);
}

/** The limits that new keys get by default, after a change; null if none is left. */
export const keyDefaultOf = (
  context: ManagementContext,
  owner: Organization,
  changes: LimitChanges | null | undefined,
  before: Budget | null,
): Promise<Budget | null> => defaultAfter(context, owner, changes, { before, whose: "new key" });

/** The limits that new keys or people get by default, after a change; null if none is left. */
export async function defaultAfter(
  context: ManagementContext,
  owner: Organization,
  changes: LimitChanges | null | undefined,
  { before, whose }: { before: Budget | null; whose: "new key" | "person" },
): Promise<Budget | null> {
  if (changes == null) return before;
  const budget = await allowed(context, owner, changedLimits(changes, before ?? noBudget), whose);
  return Object.values(budget).every((limit) => limit === null) ? null : budget;
}

/** The limits of a new key: those that are given, on top of what its team or its organization gives. */
export async function newKeyBudget(
  context: ManagementContext,
  organization: Organization,
  input: { team?: string | null | undefined; limits?: LimitChanges | null | undefined },
): Promise<{ teamId: string | null; budget: Budget }> {
  const team = input.team == null ? null : await teamNamed(context, input.team, organization);
  const inherited = team?.keyDefault ?? (await context.administration.keyDefault(organization.id)) ?? noBudget;
  const budget = changedLimits(input.limits, inherited);
  if (input.limits != null) await allowed(context, organization, budget, "key");
  return { teamId: team?.id ?? null, budget };
}
