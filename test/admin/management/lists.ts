/** Reads all pages of a list, for tests that need all entries. */
import { allOf } from "../../../src/admin/management/page.ts";
import type { Management, VerbAnswer } from "../../../src/admin/management/verbs.ts";

export function listKeys(manage: Management, filter: { organization?: string } = {}): Promise<VerbAnswer<"findKey">[]> {
  return allOf((page) => manage.pageKeys({ ...filter, ...page }));
}

export function listTeams(
  manage: Management,
  filter: { organization?: string } = {},
): Promise<VerbAnswer<"findTeam">[]> {
  return allOf((page) => manage.pageTeams({ ...filter, ...page }));
}

export function listOrganizations(manage: Management): Promise<VerbAnswer<"findOrganization">[]> {
  return allOf((page) => manage.pageOrganizations(page));
}
