/** What an administrator reads in the audit log. */
import type { AuditEntry } from "../store/directory.ts";
import type { ManagementContext } from "./context.ts";
import * as parse from "./parse.ts";

export interface AuditVerbs {
  /** Newest first; `limit` 1 to 1,000, else 50. */
  listAudit(input: { organization?: string | null; limit?: number | null }): Promise<AuditEntry[]>;
}

export function auditVerbs({ administration, organizationOf }: ManagementContext): AuditVerbs {
  return {
    async listAudit(input) {
      const limit = parse.count(input.limit ?? 50, 1000, "The number of entries");
      if (parse.isAbsent(input.organization)) return administration.listAudit({ limit });
      const { id } = await organizationOf(input.organization);
      return administration.listAudit({ organizationId: id, limit });
    },
  };
}
