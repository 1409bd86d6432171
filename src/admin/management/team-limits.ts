/** The limits that new keys and people get by default, and limits within those of a plan. */
import Type from "typebox";
import { nullable } from "../../core/protocol/shapes/contract.ts";
import type { Value } from "../../core/schema/codec.ts";
import { type Budget, noBudget } from "../../core/store/budget.ts";
import type { Organization } from "../../core/store/directory.ts";
import type { Plan } from "../../core/store/plan.ts";
import { id, Limits } from "../store/shapes.ts";
import { flag } from "./command.ts";
import { isClosed, type ManagementContext, noOrganization } from "./context.ts";
import { changedLimits, type LimitChanges, limitsInWords, withinPlan } from "./limits.ts";
import { organizationFlag } from "./organizations.ts";
import { examples } from "./shapes.ts";
import { teamNamed } from "./team.ts";
import { changed } from "./version.ts";

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

/** The command that shows and sets limits that an organization gives. */
export const defaultCommand = <Reads extends { name: string }>(
  reads: Reads,
  words: { words: string; description: string; limit: string; whose: string },
) => ({
  words: words.words,
  description: words.description,
  takes: { organization: organizationFlag, limits: flag("--limit", words.limit) },
  reads,
  versioned: "organization",
  says: ({ organization, limits }: Default) =>
    `${words.whose} of ${organization} get: ${limitsInWords(limits) ?? "no limits of their own"}.\n`,
});

/** The plan of an organization; null: it has none, or none that is in force. */
export async function planOf({ catalog }: ManagementContext, { plan }: Organization): Promise<Plan | null> {
  return plan === null ? null : ((await catalog()).plans.get(plan) ?? null);
}

/** The limits that new keys or people get by default, after a change; null if none is left. */
export function defaultAfter(
  changes: LimitChanges | null | undefined,
  before: Budget | null,
  { plan, whose }: { plan: Plan | null; whose: "new key" | "person" },
): Budget | null {
  if (changes == null) return before;
  const budget = withinPlan(changedLimits(changes, before ?? noBudget), plan, whose);
  return Object.values(budget).every((limit) => limit === null) ? null : budget;
}

/** Changes what an organization gives to its new keys, or to its people. */
export async function changeDefault(
  context: ManagementContext,
  input: { organization: string; limits: LimitChanges; version?: number },
  { of, whose, schema }: { of: "Key" | "Member"; whose: "new key" | "person"; schema: ReturnType<typeof defaultShape> },
): Promise<Default> {
  const { administration, actor, openOrganization } = context;
  const organization = await openOrganization(input.organization);
  const { id, slug } = organization;
  const plan = await planOf(context, organization);
  const change = { id, actor, version: input.version };
  const answer = await administration[`set${of}Default`](change, (now) =>
    defaultAfter(input.limits, now, { plan, whose }),
  );
  return changed(
    context,
    { read: input.version, id },
    {
      schema,
      title: ({ organization }) => `Organization '${organization.slug}'`,
      listed: (now) => defaultShown(now.organization, now.limits),
      refusals: { gone: () => noOrganization(slug), closed: () => isClosed(slug) },
    },
    answer,
  );
}

/** The limits of a new key: those that are given, on top of what its team or its organization gives. */
export async function newKeyBudget(
  context: ManagementContext,
  organization: Organization,
  input: { team?: string | null | undefined; limits?: LimitChanges | null | undefined },
): Promise<{ teamId: string | null; limits: Budget }> {
  const team = input.team == null ? null : await teamNamed(context, input.team, organization);
  const inherited = team?.keyLimits ?? (await context.administration.keyDefault(organization.id)) ?? noBudget;
  const limits = changedLimits(input.limits, inherited);
  if (input.limits != null) withinPlan(limits, await planOf(context, organization), "key");
  return { teamId: team?.id ?? null, limits };
}
