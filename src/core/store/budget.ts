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

/** The limits that count for a person in an organization. */
export interface MemberBudget {
  /** `mem_` + hex, by which the ledger and standings name the person there. */
  memberId: string;
  organizationId: string;
  /** Whether they were set for the person alone. Else they come from the team or the organization. */
  isOwn: boolean;
  budget: Budget;
}
