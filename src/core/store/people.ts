/** The kinds of people and their roles, and a membership as a rule or an administrator names it (docs/identity.md). */
import type { Scope } from "./directory.ts";

/** The kinds of people. `service`: a workload. */
export const personKinds = ["person", "service"] as const;
export type PersonKind = (typeof personKinds)[number];

/** `member` and `organization-admin` are roles in an organization, `viewer` and `admin` for the service. */
export const memberRoles = ["member", "organization-admin"] as const;
export const serviceRoles = ["viewer", "admin"] as const;
export const personRoles = [...memberRoles, ...serviceRoles] as const;
export type PersonRole = (typeof personRoles)[number];

/** A membership as people write it: the organization by slug or id, the team by name or id. */
export interface NamedMembership {
  organization: string | null;
  team: string | null;
  role: PersonRole;
  scopes: readonly Scope[];
  models: readonly string[] | null;
}
