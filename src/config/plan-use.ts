/** Finds plans that organizations have but the catalog lacks: their inference is refused with 402. Pure. */
import type { PlanUse } from "../admin/store/plan.ts";
import type { Plan } from "../core/store/plan.ts";

type Plans = ReadonlyMap<string, Plan>;

/**
 * The plans that are used but missing. `before`: the plans that were in force; if it is given, only the plans that this
 * change removes.
 */
export function lostPlans(uses: readonly PlanUse[], plans: Plans, before: Plans | null = null): PlanUse[] {
  return uses.filter(({ plan }) => !plans.has(plan) && (before?.has(plan) ?? true));
}

export function takesPlansAway(before: Plans, plans: Plans): boolean {
  return [...before.keys()].some((name) => !plans.has(name));
}

/** A plan and its users in words: `plan 'gold' is used by 2 organizations (acme, umbrella)`. */
export function usedBy({ plan, organizations, slugs }: PlanUse): string {
  const more = organizations - slugs.length;
  const named = `${slugs.join(", ")}${more > 0 ? `, and ${more} more` : ""}`;
  return `plan '${plan}' is used by ${organizations} organization${organizations === 1 ? "" : "s"} (${named})`;
}
