/**
 * Memberships over SQL. When a rule no longer gives a membership, its row stays, with the instant at which it ended. If
 * the rule gives it again much later, that instant shows that the person's old keys must be revoked. Until then the row
 * limits what keys that still work may do (`keys_of_leavers: keep`).
 */
import { isDeepStrictEqual } from "node:util";
import { and, eq, isNull, ne, type SQL, sql } from "drizzle-orm";
import { membership, organization, team } from "../../../db/schema.ts";
import { idOf, uuidOf } from "../../core/store/ids.ts";
import type { NamedMembership } from "../../core/store/people.ts";
import { type Membership, membershipOfRow } from "../../features/identity/store/people.ts";
import type { Querying, Transaction } from "./database.ts";
import { lockOrganizations } from "./refresh-limits.ts";
import { shownId } from "./rows.ts";

type MembershipRow = typeof membership.$inferSelect;

/** SQL for the memberships in force: in each organization the one given by hand, or else the one given by a rule. */
export const inForce = `
  select distinct on (m.person_id, m.organization_id) m.*
  from membership m left join organization o on o.id = m.organization_id
  where m.ended_at is null and (m.organization_id is null or o.status <> 'closed')
  order by m.person_id, m.organization_id, m.source = 'hand' desc`;

/**
 * SQL for the memberships of the `person` row of a query. The membership for the service, without an organization,
 * comes last.
 */
export const membershipsShown = sql
  .raw(
    `(select coalesce(json_agg(shown order by shown.organization nulls last), '[]') from (
      select ${shownId("f.organization_id", "org_")} as organization_id, o.slug as organization,
        case when t.id is not null then json_build_object('id', ${shownId("t.id", "team_")}, 'name', t.name) end as team,
        f.role, f.scopes, f.models, f.source, f.created_at, f.created_by
      from (${inForce.replace("where ", "where m.person_id = person.id and ")}) f
        left join organization o on o.id = f.organization_id
        left join team t on t.id = f.team_id and t.removed_at is null
    ) shown)`,
  )
  .mapWith((rows: unknown[]) => rows.map(membershipOfRow));

/** The UUID of an organization that is not closed, by slug or id. It stays open until the commit. */
export async function organizationNamed(tx: Pick<Transaction, "drizzle">, slugOrId: string): Promise<string | null> {
  const uuid = uuidOf(slugOrId, "org_");
  const [row] = await tx.drizzle
    .select({ id: organization.id })
    .from(organization)
    .where(and(uuid ? eq(organization.id, uuid) : eq(organization.slug, slugOrId), ne(organization.status, "closed")))
    .for("key share");
  return row?.id ?? null;
}

/** The UUID of a team of the organization, by name or id. */
export async function teamNamed(
  tx: Pick<Transaction, "drizzle">,
  owner: string,
  nameOrId: string,
): Promise<string | null> {
  const uuid = uuidOf(nameOrId, "team_");
  const named = uuid ? eq(team.id, uuid) : eq(team.name, nameOrId);
  const [row] = await tx.drizzle
    .select({ id: team.id })
    .from(team)
    .where(and(eq(team.organizationId, owner), isNull(team.removedAt), named));
  return row?.id ?? null;
}

/** A membership with UUIDs in place of names; or a refusal, if the organization or the team does not exist. */
export async function resolved(tx: Transaction, named: NamedMembership) {
  const { role, scopes, models } = named;
  const values = { role, scopes: [...scopes], models: models === null ? null : [...models] };
  if (named.organization === null) return { ...values, organizationId: null, teamId: null };
  const organizationId = await organizationNamed(tx, named.organization);
  if (organizationId === null) return "no_organization" as const;
  const teamId = named.team === null ? null : await teamNamed(tx, organizationId, named.team);
  if (named.team !== null && teamId === null) return "no_team" as const;
  return { ...values, organizationId, teamId };
}

export const isIn = (personId: string, organizationId: string | null, source: Membership["source"]): SQL | undefined =>
  and(
    eq(membership.personId, personId),
    organizationId === null ? isNull(membership.organizationId) : eq(membership.organizationId, organizationId),
    eq(membership.source, source),
  );

interface RuleChanges {
  /** The memberships that rules gave and took, in the form of the audit log. */
  given: Record<string, unknown>[];
  lost: Record<string, unknown>[];
  missing: NamedMembership[];
  /** Whether a rule no longer gives the role of an administrator that it gave before. */
  losesAdmin: boolean;
  /** The UUIDs of the organizations in which something changed. */
  organizations: string[];
}

/** Replaces the memberships that rules have given to a person with `memberships`. The person's row must be locked. */
export async function applyRules(
  tx: Transaction,
  { id }: { id: string },
  {
    memberships,
    keysEndAfter_ms = null,
  }: { memberships: readonly NamedMembership[] | null; keysEndAfter_ms?: number | null | undefined },
  at: Date,
): Promise<RuleChanges> {
  const before = await tx.drizzle
    .select()
    .from(membership)
    .where(and(eq(membership.personId, id), eq(membership.source, "rule")));
  const result: RuleChanges = { given: [], lost: [], missing: [], losesAdmin: false, organizations: [] };
  const wanted = new Map<string | null, Exclude<Awaited<ReturnType<typeof resolved>>, string>>();
  for (const named of memberships ?? []) {
    const found = await resolved(tx, named);
    if (typeof found === "string") result.missing.push(named);
    else if (!wanted.has(found.organizationId)) wanted.set(found.organizationId, found);
  }
  const wasAdmin = before.some(({ role, endedAt }) => role === "admin" && endedAt === null);
  result.losesAdmin = wasAdmin && wanted.get(null)?.role !== "admin";
  for (const row of before) {
    if (row.endedAt !== null || wanted.has(row.organizationId)) continue;
    await tx.drizzle.update(membership).set({ endedAt: at }).where(eq(membership.id, row.id));
    result.lost.push(auditDetails(row));
    if (row.organizationId) result.organizations.push(row.organizationId);
  }
  const returned: string[] = [];
  for (const [organizationId, values] of wanted) {
    const row = before.find((one) => one.organizationId === organizationId);
    if (row && row.endedAt === null && hasValues(row, values)) continue;
    if (
      row?.endedAt &&
      organizationId &&
      keysEndAfter_ms !== null &&
      at.getTime() - row.endedAt.getTime() > keysEndAfter_ms
    )
      returned.push(organizationId);
    if (row)
      await tx.drizzle
        .update(membership)
        .set({ ...values, endedAt: null })
        .where(eq(membership.id, row.id));
    else
      await tx.drizzle
        .insert(membership)
        .values({ personId: id, ...values, source: "rule", createdAt: at, createdBy: "service" });
    result.given.push(auditDetails(values));
    if (organizationId) result.organizations.push(organizationId);
  }
  // Organizations are locked before keys, as in a change of a key, so that no deadlock is possible.
  if (returned.length > 0) await lockOrganizations(tx, result.organizations);
  for (const organizationId of returned) await revokeKeys(tx, id, organizationId, at);
  return result;
}

type Values = Pick<MembershipRow, "organizationId" | "teamId" | "role" | "scopes" | "models">;
const hasValues = (row: MembershipRow, values: Values) => isDeepStrictEqual(auditDetails(row), auditDetails(values));

export function auditDetails({ organizationId, teamId, role, scopes, models }: Values): Record<string, unknown> {
  return {
    ...(organizationId === null ? {} : { organization_id: idOf(organizationId, "org_") }),
    role,
    ...(teamId === null ? {} : { team_id: idOf(teamId, "team_") }),
    ...(organizationId === null ? {} : { scopes, ...(models === null ? {} : { models }) }),
  };
}

/** Revokes the keys of a person for good: in one organization, or in all. */
export async function revokeKeys(tx: Querying, id: string, organizationId: string | null, at: Date): Promise<number> {
  const rows = await tx.query(
    `update api_key set revoked_at = $3, version = version + 1
     where person_id = $1 and revoked_at is null and ($2::uuid is null or organization_id = $2) returning id`,
    [id, organizationId, at],
  );
  return rows.length;
}
