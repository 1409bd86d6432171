/**
 * The limits of an organization: its own limit replaces its plan's, and a raise can lift the result (docs/limits.md).
 * Pure.
 */
import type { RateLimits } from "./rates.ts";

/**
 * The stored value of a limit that is switched off, whatever would be inherited. A stored null means that the limit is
 * inherited.
 */
export const not_limited = 0;

/** The higher of a limit and its raise. A limit of null (none) stays null. */
export function raisedTo(limit: number | null, raise: number | null | undefined): number | null {
  return limit !== null && raise != null && raise > limit ? raise : limit;
}

/** The limit in force: the organization's own, else its plan's, lifted by the raise. */
export function overPlan(plan: number | null, own?: number | null, raise?: number | null): number | null {
  const base = own ?? plan;
  return raisedTo(base === not_limited ? null : base, raise);
}

/** An organization's own limits per minute, and the raise of them. */
export interface RatesOverPlan {
  own: RateLimits;
  raise: RateLimits;
}

export function ratesOverPlan(plan: RateLimits, over?: RatesOverPlan | null): RateLimits {
  const inForce = (rate: keyof RateLimits) => overPlan(plan[rate], over?.own[rate], over?.raise[rate]);
  return { requestsPerMinute: inForce("requestsPerMinute"), tokensPerMinute: inForce("tokensPerMinute") };
}
