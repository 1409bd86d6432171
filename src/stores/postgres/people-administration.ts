/**
 * Administration of people over SQL. Every act locks the person first, and is announced to all nodes under the person's
 * id.
 */
import { isDeepStrictEqual } from "node:util";
import { and, eq, exists, gt, isNotNull, isNull, type SQL, sql } from "drizzle-orm";
import { membership, person } from "../../../db/schema.ts";
import type { PeopleAdministration, PersonQuery } from "../../admin/store/people.ts";
import { bare, uuid_max, uuidOf } from "../../core/store/ids.ts";
import type { KnownPerson } from "../../features/identity/store/people.ts";
import { keepingAdministrator } from "./administrators.ts";
import { type Changeable, change } from "./change.ts";
import type { Database, Transaction } from "./database.ts";
import { ofPerson, revokeInvitations } from "./invitations.ts";
import { auditDetails, inForce, isIn, resolved, revokeKeys } from "./memberships.ts";
import { people } from "./people.ts";
import { limitedPerson, type PersonRow, peopleIn } from "./person.ts";
import { refreshPerson } from "./refresh-limits.ts";
import { pageIn, uuidIfAny } from "./rows.ts";
import { hasUsed } from "./standing.ts";

export function peopleAdministration(db: Database): PeopleAdministration {
  return {
    findPerson: people(db).findPerson,

    async wasIn(id, organizationId) {
      const uuid = uuidOf(id, "per_");
      if (uuid === null) return false;
      const [row] = await db.query<{ was: boolean }>(
        `select exists (select from membership where person_id = $1 and organization_id = $2)
           or exists (select from api_key where person_id = $1 and organization_id = $2) as was`,
        [uuid, bare(organizationId, "org_")],
      );
      return row!.was;
    },

    pagePeople: (query) => pageIn(peopleIn(db).where(wantedBy(db, query)).orderBy(person.id), query.limit),

    suspendPerson: (id, actor, version) =>
      change(db, changeablePerson, { id, actor, version }, async (tx, row, at) => {
        if (row.suspendedAt) return null;
        await tx.drizzle.update(person).set({ suspendedAt: at }).where(eq(person.id, row.id));
        await endSessions(tx, row.id);
        return { action: "person.suspend", details: {} };
      }),

    resumePerson: (id, actor, version) =>
      change(db, changeablePerson, { id, actor, version }, async (tx, row) => {
        if (!row.suspendedAt) return null;
        await tx.drizzle.update(person).set({ suspendedAt: null }).where(eq(person.id, row.id));
        return { action: "person.resume", details: {} };
      }),

    forgetPerson: (id, actor, version) =>
      change(db, changeablePerson, { id, actor, version }, async (tx, row, at) => {
        if (row.forgottenAt) return null;
        const keys = await revokeKeys(tx, row.id, null, at);
        await erase(tx, row.id, at);
        return { action: "person.forget", details: { keys_revoked: keys } };
      }),

    giveMembership: (id, named, actor, version) =>
      change(db, changeablePerson, { id, actor, version }, async (tx, row, at) => {
        const values = await resolved(tx, named);
        if (typeof values === "string") return values;
        const { organizationId } = values;
        const [stored] = await tx.drizzle
          .select()
          .from(membership)
          .where(isIn(row.id, organizationId, "hand"));
        const before = stored?.endedAt === null ? stored : null;
        if (before && isDeepStrictEqual(auditDetails(before), auditDetails(values))) return null;
        if (stored) await tx.drizzle.delete(membership).where(eq(membership.id, stored.id));
        const given = { personId: row.id, ...values, source: "hand" as const, createdAt: at, createdBy: actor };
        await tx.drizzle.insert(membership).values(given);
        const details = { ...auditDetails(values), ...(before ? { before: auditDetails(before) } : {}) };
        const unsummed = await refreshPerson(tx, organizationId ? [organizationId] : [], row.id);
        return { action: "membership.give", details, owner: organizationId, unsummed };
      }),

    takeMembership: (id, organizationId, actor, version) =>
      change(db, changeablePerson, { id, actor, version }, async (tx, row, at) => {
        const owner = uuidIfAny(organizationId, "org_");
        const gone = await endMembership(tx, row.id, owner, at);
        if (!gone) return "no_membership";
        const unsummed = await refreshPerson(tx, owner ? [owner] : [], row.id);
        // An invitation from before would give the membership back at the next sign-in.
        const revoked = owner ? await revokeInvitations(tx, row.id, { owner, actor, at }) : 0;
        const details = { ...auditDetails(gone), ...(revoked > 0 ? { invitations_revoked: revoked } : {}) };
        return { action: "membership.take", details, owner, unsummed };
      }),
  };
}

/**
 * Ends a membership by hand. While the person has keys in the organization its row stays, because no such key may do
 * more than its owner's last membership.
 */
async function endMembership(tx: Transaction, id: string, owner: string | null, at: Date) {
  const isGiven = and(isIn(id, owner, "hand"), isNull(membership.endedAt));
  const keys = await tx.query(
    "select from api_key where person_id = $1 and organization_id = $2 and kind = 'key' and revoked_at is null limit 1",
    [id, owner],
  );
  const [gone] =
    keys.length > 0
      ? await tx.drizzle.update(membership).set({ endedAt: at }).where(isGiven).returning()
      : await tx.drizzle.delete(membership).where(isGiven).returning();
  return gone;
}

function wantedBy(
  db: Database,
  { after, organizationId, teamId, search, suspended, byHand, overPercent: over }: PersonQuery,
): SQL | undefined {
  const within = organizationId === undefined ? undefined : bare(organizationId, "org_");
  const isMember = (owner: string) =>
    exists(
      db.drizzle
        .select({ one: sql`1` })
        .from(membership)
        .where(
          and(eq(membership.personId, person.id), eq(membership.organizationId, owner), isNull(membership.endedAt)),
        ),
    );
  const contains = (text: string) =>
    sql`(position(lower(${text}) in lower(${person.email})) > 0 or position(lower(${text}) in lower(${person.name})) > 0)`;
  return and(
    after === undefined ? undefined : gt(person.id, uuidOf(after, "per_") ?? uuid_max),
    within === undefined ? undefined : isMember(within),
    teamId === undefined ? undefined : isInTeam(bare(teamId, "team_")),
    search === undefined ? undefined : contains(search),
    over === undefined ? undefined : isOver(over, within),
    suspended === undefined ? undefined : suspended ? isNotNull(person.suspendedAt) : isNull(person.suspendedAt),
    byHand ? setByHand(within) : undefined,
  );
}

const isInTeam = (team: string) =>
  sql`${person.id} in (select f.person_id from (${sql.raw(inForce)}) f where f.team_id = ${team})`;

/**
 * SQL for people who are suspended, or for whom a setting was made by hand. If `owner` is given, only settings in that
 * organization count.
 */
function setByHand(owner: string | undefined): SQL {
  const here = (column: string) => (owner === undefined ? sql`` : sql` and ${sql.raw(column)} = ${owner}`);
  return sql`(${person.suspendedAt} is not null
    or ${person.id} in (select m.person_id from membership m where m.source = 'hand' and m.ended_at is null${here("m.organization_id")})
    or ${person.id} in (
      select s.person_id from usage_subject s join limit_value l on l.subject_id = s.subject_id and l.kind = 'own'
      where true${here("l.organization_id")}))`;
}

const isOver = (percent: number, owner: string | undefined) =>
  sql`${person.id} in (
    select m.person_id from usage_subject m where ${hasUsed("person", sql`m.subject_id`, percent, owner)})`;

const changeablePerson: Changeable<PersonRow, KnownPerson, "last_admin"> = {
  ...limitedPerson,
  transaction: keepingAdministrator,
};

/** Ends sessions of browsers, and approvals that no device has fetched yet. */
async function endSessions(tx: Transaction, id: string): Promise<void> {
  await tx.query("delete from browser_session where person_id = $1", [id]);
  await tx.query("delete from device_request where person_id = $1", [id]);
}

/**
 * Erases the identity of a person, and ends the person's sessions and sign-ins. The hash of the issuer's subject stays,
 * so that a person who returns is recognised.
 */
async function erase(tx: Transaction, id: string, at: Date): Promise<void> {
  await tx.drizzle.delete(membership).where(eq(membership.personId, id));
  await endSessions(tx, id);
  // The messages in these rows are the person's own words.
  await tx.query("delete from limit_request where person_id = $1", [id]);
  await tx.query("delete from notice where person_id = $1", [id]);
  await tx.query(`delete from invitation where person_id = $1 or ${ofPerson}`, [id]);
  await tx.query(
    "update sign_in set ended_at = $2, tokens = null, refreshing_by = null, address = '' where person_id = $1 and ended_at is null",
    [id, at],
  );
  const nobody = { subject: null, email: null, isEmailVerified: false, name: null, groups: [], groupsAt: null };
  await tx.drizzle
    .update(person)
    .set({ ...nobody, notBefore: at, forgottenAt: at })
    .where(eq(person.id, id));
}
