/**
 * The limits of keys, people and teams, in addition to those of their organization's plan (docs/design/usage.md,
 * Budgets). The ledger counts the usage that these limits apply to (ledger.ts).
 */
import type { LimitMet } from "../inference/fault.ts";
import type { PlanLimits } from "./plan.ts";

export type LimitedBy = LimitMet["limitedBy"];

/** The kind of subject that a limit applies to, and the models whose use it limits (absent: all models). */
export interface Limited {
  limitedBy: LimitedBy;
  /** A public model id, or `prefix/*`. */
  models?: string;
}

/** A copy of the limit's `limitedBy` and `models`, without its other fields. */
export const limitedOf = ({ limitedBy, models }: Limited): Limited => ({
  limitedBy,
  ...(models !== undefined && { models }),
});

export function matchesModel(pattern: string, model: string): boolean {
  return pattern === model || (pattern.endsWith("/*") && model.startsWith(pattern.slice(0, -1)));
}

export const narrowest: readonly LimitedBy[] = ["key", "person", "team", "organization"];
/** The sort key of limits by their models: a single model sorts first, then prefixes, then all models. */
const breadth = (models = "/*") => (models.endsWith("/*") ? 1 / models.length : 0);

/** Compares two limits of one request: the narrowest, which is the easiest to raise, sorts first. */
export const narrowestFirst = (one: Limited, other: Limited): number =>
  narrowest.indexOf(one.limitedBy) - narrowest.indexOf(other.limitedBy) || breadth(one.models) - breadth(other.models);

/** Limits in the same units as a plan's limits: amounts are nanos (billionths of the currency). Null: no limit. */
export type Budget = PlanLimits;
