/** The management interface: to add an operation is to add one value to one of these lists. */
import type { ManagementOperation } from "./operation.ts";
import { auditOperations } from "./operations/audit.ts";
import { budgetOperations } from "./operations/budgets.ts";
import { keyOperations } from "./operations/keys.ts";
import { noticeOperations } from "./operations/notices.ts";
import { operatorOperations } from "./operations/operators.ts";
import { organizationOperations } from "./operations/organizations.ts";
import { planOperations } from "./operations/plans.ts";
import { reportOperations } from "./operations/reports.ts";
import { teamOperations } from "./operations/teams.ts";
import { usageOperations } from "./operations/usage.ts";

/** The contract, in the order in which the document shows it. */
export const managementOperations: readonly ManagementOperation[] = [
  ...organizationOperations,
  ...keyOperations,
  ...teamOperations,
  ...budgetOperations,
  ...usageOperations,
  ...reportOperations,
  ...planOperations,
  ...noticeOperations,
  ...auditOperations,
  ...operatorOperations,
];
