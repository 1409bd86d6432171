/**
 * Checks what a request may use before anything is held for it: a plan in force, a context that its input fits into,
 * and room for output. Pure.
 */
import { noActivePlan } from "../auth/verdict.ts";
import type { Model } from "../inference/model.ts";
import { inputTooLong, withOverflow } from "../inference/overflow.ts";
import type { CallerOrganization } from "../store/directory.ts";
import type { Plan } from "../store/plan.ts";

/** The organization's plan, or null if it has none, or none that is in force. */
export function planOf(
  plans: ReadonlyMap<string, Plan>,
  { plan: name }: Pick<CallerOrganization, "plan">,
): Plan | null {
  return (name !== null && plans.get(name)) || null;
}

/** Throws `no_active_plan`. */
export function activePlan(plans: ReadonlyMap<string, Plan>, organization: Pick<CallerOrganization, "plan">): Plan {
  const plan = planOf(plans, organization);
  if (plan) return plan;
  throw noActivePlan();
}

/**
 * Throws `context_length_exceeded`. An estimate refuses only an input that is far too long; otherwise the engine has
 * the last word.
 */
export function requireContext(model: Model, inputTokens: number): void {
  if (inputTokens < 2 * model.contextTokens) return;
  throw withOverflow(inputTooLong({}), model.contextTokens, inputTokens);
}

/** The output tokens that the model's own cap and the rest of its context allow. */
export function outputTokensAllowed(model: Model, inputTokens: number): number {
  return Math.min(model.outputTokens_max, Math.max(1, model.contextTokens - inputTokens));
}
