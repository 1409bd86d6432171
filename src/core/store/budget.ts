/**
 * The limits of keys, people and teams beside their organization's plan (docs/design/usage.md, Budgets). The ledger counts them
 * (ledger.ts); an administrator sets them here.
 */
import type { LimitMet } from "../inference/fault.ts";
import { noLimits, type PlanLimits } from "./plan.ts";

/** The kinds of subjects that have limits. */
export type LimitedBy = LimitMet["limitedBy"];

/** Whose limit it is, and for which models; absent: for all. */
export interface Limited {
  limitedBy: LimitedBy;
  /** A pattern: a public model id, or `prefix/*`. */
  models?: string;
}

/** Without what else it has. */
export const limitedOf = ({ limitedBy, models }: Limited): Limited => ({
  limitedBy,
  ...(models !== undefined && { models }),
});

export function matchesModel(pattern: string, model: string): boolean {
  return pattern === model || (pattern.endsWith("/*") && model.startsWith(pattern.slice(0, -1)));
}

export const narrowest: readonly LimitedBy[] = ["key", "person", "team", "organization"];
/** A model, then its prefixes, then all models. */
const breadth = (models = "/*") => (models.endsWith("/*") ? 1 / models.length : 0);

/** Orders limits of one request: the narrowest, which is the easiest to raise, comes first. */
export const narrowestFirst = (one: Limited, other: Limited): number =>
  narrowest.indexOf(one.limitedBy) - narrowest.indexOf(other.limitedBy) || breadth(one.models) - breadth(other.models);

/** Limits in the nanos of a plan. Null means no limit. */
export type Budget = PlanLimits;

const { name: _, ...unlimited } = noLimits;
export const noBudget: Budget = Object.freeze(unlimited);

/** The limits in the order in which the ledger takes them. */
export const budgetNames = [
  "session",
  "week",
  "month",
  "concurrentRequests",
  "requestsPerMinute",
  "tokensPerMinute",
] as const satisfies readonly (keyof Budget)[];
