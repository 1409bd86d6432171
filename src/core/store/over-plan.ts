/** The limits of an organization: its own in the place of its plan's, under its raise (docs/limits.md). Pure. */
import type { RateLimits } from "./rates.ts";

/** A stored limit that says that nothing limits, whatever would be inherited. Null says nothing. */
export const not_limited = 0;

/** A limit under a raise. A raise never lowers, and what is not limited stays so. */
export function raisedTo(limit: number | null, raise: number | null | undefined): number | null {
  return limit !== null && raise != null && raise > limit ? raise : limit;
}

/** The limit in force: the organization's own, else its plan's, under the raise. */
export function overPlan(plan: number | null, own?: number | null, raise?: number | null): number | null {
  const base = own ?? plan;
  return raisedTo(base === not_limited ? null : base, raise);
}

/** An organization's own limits of a minute, and its raise of them. */
export interface RatesOverPlan {
  own: RateLimits;
  raise: RateLimits;
}

export function ratesOverPlan(plan: RateLimits, over?: RatesOverPlan | null): RateLimits {
  const inForce = (rate: keyof RateLimits) => overPlan(plan[rate], over?.own[rate], over?.raise[rate]);
  return { requestsPerMinute: inForce("requestsPerMinute"), tokensPerMinute: inForce("tokensPerMinute") };
}
