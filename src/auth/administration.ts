/**
 * What an administrator can do: the rules over the store's plain verbs. The CLI speaks to this, directly or through the
 * socket of a running server (src/cli/socket.ts), so every argument is one object and is checked here as if nobody had.
 * A wrong wish is a Refusal; anything else that is thrown is an outage.
 */
import type { AuditEntry } from "../store/directory.ts";
import { type Acting, actingFor, type ManagementOptions } from "./acting.ts";
import { type KeyVerbs, keyVerbs } from "./key-verbs.ts";
import { type OrganizationVerbs, organizationVerbs } from "./organization-verbs.ts";
import { type UsageVerbs, usageVerbs } from "./usage-verbs.ts";
import * as wish from "./wish.ts";

export interface Management extends OrganizationVerbs, KeyVerbs, UsageVerbs {
  /** Newest first; `limit` 1 to 1,000, else 50. */
  listAudit(input: { organization?: string | null; limit?: number | null }): Promise<AuditEntry[]>;
}

export function management(options: ManagementOptions): Management {
  const acting = actingFor(options);
  return { ...organizationVerbs(acting), ...keyVerbs(acting), ...usageVerbs(acting), ...auditVerbs(acting) };
}

function auditVerbs({ administration, organizationOf }: Acting): Pick<Management, "listAudit"> {
  return {
    async listAudit(input) {
      const limit = wish.count(input.limit ?? 50, 1000, "The number of entries");
      if (wish.isAbsent(input.organization)) return administration.listAudit({ limit });
      const { id } = await organizationOf(input.organization);
      return administration.listAudit({ organizationId: id, limit });
    },
  };
}

/** The verbs by name, for a door that takes them from outside. */
export const managementVerbs = [
  "createOrganization",
  "listOrganizations",
  "findOrganization",
  "suspendOrganization",
  "resumeOrganization",
  "setPlan",
  "setAnchor",
  "setExtraUsage",
  "createKey",
  "listKeys",
  "findKey",
  "rotateKey",
  "revokeKey",
  "readUsage",
  "checkUsage",
  "adjustUsage",
  "findRequest",
  "listAudit",
] as const satisfies readonly (keyof Management)[];
