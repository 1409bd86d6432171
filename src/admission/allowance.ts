/** What a request may have, before anything is held for it: a plan, a context that its input fits, and room for output. Pure. */
import { Fault } from "../inference/fault.ts";
import type { Model } from "../inference/model.ts";
import { inputTooLong, withOverflow } from "../inference/overflow.ts";
import type { Organization } from "../store/directory.ts";
import type { Plan } from "../store/plan.ts";

/** Throws `no_active_plan`. */
export function activePlan(plans: ReadonlyMap<string, Plan>, { plan: name }: Pick<Organization, "plan">): Plan {
  const plan = name === null ? undefined : plans.get(name);
  if (plan) return plan;
  throw new Fault("no_active_plan", "The organization has no active plan. Ask your administrator to assign one.");
}

/** Throws `context_length_exceeded`. An estimate refuses only what is far out; of what is near, the engine has the last word. */
export function requireContext(model: Model, inputTokens: number): void {
  if (inputTokens < 2 * model.contextTokens) return;
  throw withOverflow(inputTooLong(inputTokens), model.contextTokens, inputTokens);
}

/** Output tokens that the model's own cap and what its context leaves allow. */
export function outputTokensAllowed(model: Model, inputTokens: number): number {
  return Math.min(model.outputTokens_max, Math.max(1, model.contextTokens - inputTokens));
}
