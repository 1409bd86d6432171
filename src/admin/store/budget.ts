/**
 * Constants for a budget, the limits that an administrator sets: the budget without any limit, and the names of the
 * limits.
 */
import type { Budget } from "../../core/store/budget.ts";
import { noLimits } from "../../core/store/plan.ts";

const { name: _, ...unlimited } = noLimits;
export const noBudget: Budget = Object.freeze(unlimited);

/** The names of the limits in the order of the ledger's arrays. */
export const budgetNames = [
  "session",
  "week",
  "month",
  "concurrentRequests",
  "requestsPerMinute",
  "tokensPerMinute",
] as const satisfies readonly (keyof Budget)[];
