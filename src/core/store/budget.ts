/**
 * The limits of keys, people and teams beside their organization's plan (docs/design/usage.md, Budgets). The ledger counts them
 * (ledger.ts); an administrator sets them here.
 */
import { noLimits, type PlanLimits } from "./plan.ts";

/** The kinds of subjects that have limits. */
export type LimitedBy = "organization" | "team" | "person" | "key";

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
