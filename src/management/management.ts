/**
 * THE MODULE MANAGEMENT: what an administrator can do. Verbs over the store, shared by every interface: the CLI calls
 * them directly or through the socket of a running server (src/cli/socket.ts). Each takes one object and validates it,
 * since it may come from outside. A verb throws a ManagementError for invalid input; any other error is an outage.
 */
import { type AuditVerbs, auditVerbs } from "./audit.ts";
import { type BudgetVerbs, budgetVerbs } from "./budgets.ts";
import { type ManagementOptions, managementContext } from "./context.ts";
import { type KeyVerbs, keyVerbs } from "./keys.ts";
import { type NoticeVerbs, noticeVerbs } from "./notices.ts";
import { type OperatorVerbs, operatorVerbs } from "./operators.ts";
import { type OrganizationChangeVerbs, organizationChangeVerbs } from "./organization-changes.ts";
import { type OrganizationVerbs, organizationVerbs } from "./organizations.ts";
import { type PlanVerbs, planVerbs } from "./plans.ts";
import { type ReportVerbs, reportVerbs } from "./reports.ts";
import { type UsageVerbs, usageVerbs } from "./usage.ts";

export interface Management
  extends OrganizationVerbs,
    OrganizationChangeVerbs,
    KeyVerbs,
    BudgetVerbs,
    PlanVerbs,
    UsageVerbs,
    ReportVerbs,
    AuditVerbs,
    NoticeVerbs,
    OperatorVerbs {}

export function management(options: ManagementOptions): Management {
  const context = managementContext(options);
  return {
    ...organizationVerbs(context),
    ...organizationChangeVerbs(context),
    ...keyVerbs(context),
    ...budgetVerbs(context),
    ...planVerbs(context),
    ...usageVerbs(context),
    ...reportVerbs(context),
    ...auditVerbs(context),
    ...noticeVerbs(context),
    ...operatorVerbs(context),
  };
}

/** The verbs that an interface may call by name. */
export const managementVerbs = [
  "createOrganization",
  "listOrganizations",
  "pageOrganizations",
  "findOrganization",
  "suspendOrganization",
  "resumeOrganization",
  "renameOrganization",
  "closeOrganization",
  "updatePolicies",
  "setPlan",
  "setAnchor",
  "setExtraUsage",
  "createKey",
  "listKeys",
  "pageKeys",
  "findKey",
  "updateKey",
  "rotateKey",
  "revokeKey",
  "createTeam",
  "listTeams",
  "pageTeams",
  "findTeam",
  "updateTeam",
  "removeTeam",
  "findKeyBudget",
  "updateKeyBudget",
  "findKeyDefault",
  "updateKeyDefault",
  "readUsage",
  "checkUsage",
  "reportUsage",
  "adjustUsage",
  "findRequest",
  "listPlans",
  "findPlan",
  "createPlan",
  "updatePlan",
  "removePlan",
  "planHistory",
  "listAudit",
  "pageAudit",
  "auditHead",
  "findNotices",
  "setNotices",
  "removeNotices",
  "createOperator",
  "pageOperators",
  "findOperator",
  "rotateOperator",
  "revokeOperator",
] as const satisfies readonly (keyof Management)[];
