/** Administration of people over SQL. Every act locks the person first, and is announced to all nodes under the person's ID. */
import { isDeepStrictEqual } from "node:util";
import { and, eq, exists, gt, isNotNull, isNull, type SQL, sql } from "drizzle-orm";
import { membership, person } from "../../../db/schema.ts";
import { bare, uuid_max, uuidOf } from "../../core/store/ids.ts";
import type { KnownPerson, PeopleAdministration, PersonChanged, PersonQuery } from "../../core/store/people.ts";
import { audit, storeNow } from "./acts.ts";
import { keepingAdministrator } from "./administrators.ts";
import { budgetShown } from "./budgets.ts";
import type { Database, Transaction } from "./database.ts";
import { memberBudgets, memberLimitOf, refreshMembers, setMemberLimit, sumAll } from "./members.ts";
import { isIn, listed, resolved, revokeKeys } from "./memberships.ts";
import { knownOf, lockPerson, type PersonRow, people, readPerson } from "./people.ts";
import { announceChange } from "./revocations.ts";
import { plainly } from "./rows.ts";
import { hasUsed } from "./standing.ts";

export function peopleAdministration(db: Database): PeopleAdministration {
  const { findPerson, personOf, endIssued } = people(db);
  return {
    findPerson,
    personOf,
    endIssued,

    async pagePeople(query) {
      const page = db.drizzle
        .select()
        .from(person)
        .where(wantedBy(db, query))
        .orderBy(person.id)
        .limit(query.limit + 1);
      const rows = await plainly(page);
      return { items: await plainly(knownOf(db, rows.slice(0, query.limit))), hasMore: rows.length > query.limit };
    },

    suspendPerson: (id, actor, version) =>
      changing<never>(db, { id, actor, version }, async (tx, row, at) => {
        if (row.suspendedAt) return null;
        await tx.drizzle.update(person).set({ suspendedAt: at }).where(eq(person.id, row.id));
        await endSessions(tx, row.id);
        return { action: "person.suspend", details: {} };
      }),

    resumePerson: (id, actor, version) =>
      changing<never>(db, { id, actor, version }, async (tx, row) => {
        if (!row.suspendedAt) return null;
        await tx.drizzle.update(person).set({ suspendedAt: null }).where(eq(person.id, row.id));
        return { action: "person.resume", details: {} };
      }),

    forgetPerson: (id, actor, version) =>
      changing<never>(db, { id, actor, version }, async (tx, row, at) => {
        if (row.forgottenAt) return null;
        const keys = await revokeKeys(tx, row.id, null, at);
        await erase(tx, row.id, at);
        return { action: "person.forget", details: { keys_revoked: keys } };
      }),

    giveMembership: (id, named, actor, version) =>
      changing<"no_organization" | "no_team">(db, { id, actor, version }, async (tx, row, at) => {
        const values = await resolved(tx, named);
        if (typeof values === "string") return values;
        const { organizationId } = values;
        const [before] = await tx.drizzle
          .select()
          .from(membership)
          .where(isIn(row.id, organizationId, "hand"));
        if (before && isDeepStrictEqual(listed(before), listed(values))) return null;
        if (before) await tx.drizzle.delete(membership).where(eq(membership.id, before.id));
        const given = { personId: row.id, ...values, source: "hand" as const, createdAt: at, createdBy: actor };
        await tx.drizzle.insert(membership).values(given);
        const details = { ...listed(values), ...(before ? { before: listed(before) } : {}) };
        const unsummed = await refreshMembers(tx, organizationId ? [organizationId] : [], row.id);
        return { action: "membership.give", details, owner: organizationId, unsummed };
      }),

    takeMembership: (id, organizationId, actor, version) =>
      changing<"no_membership">(db, { id, actor, version }, async (tx, row) => {
        const owner = organizationId === null ? null : bare(organizationId, "org_");
        const [gone] = await tx.drizzle
          .delete(membership)
          .where(isIn(row.id, owner, "hand"))
          .returning();
        if (!gone) return "no_membership";
        const unsummed = await refreshMembers(tx, owner ? [owner] : [], row.id);
        return { action: "membership.take", details: listed(gone), owner, unsummed };
      }),

    memberBudgets: (ids) => plainly(memberBudgets(db, ids)),

    setMemberLimits: (id, { organizationId, before, budget }, actor, version) =>
      changing<"overtaken">(db, { id, actor, version }, async (tx, row) => {
        const owner = bare(organizationId, "org_");
        await tx.query("select id from organization where id = $1 for no key update", [owner]);
        const own = await memberLimitOf(tx, owner, row.id);
        if (!isDeepStrictEqual(own, before)) return "overtaken";
        if (isDeepStrictEqual(own, budget)) return null;
        await setMemberLimit(tx, owner, row.id, budget);
        const unsummed = await refreshMembers(tx, [owner], row.id);
        const details = { limits: budget && budgetShown(budget), before: own && budgetShown(own) };
        return { action: "person.limits", details, owner, unsummed };
      }),

    async memberLimits(id, organizationId) {
      const [person, owner] = [uuidOf(id, "per_"), uuidOf(organizationId, "org_")];
      return person === null || owner === null ? null : plainly(memberLimitOf(db, owner, person));
    },
  };
}

function wantedBy(
  db: Database,
  { after, organizationId, search, isSuspended, isByHand, over }: PersonQuery,
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
    search === undefined ? undefined : contains(search),
    over === undefined ? undefined : isOver(over, within),
    isSuspended === undefined ? undefined : isSuspended ? isNotNull(person.suspendedAt) : isNull(person.suspendedAt),
    isByHand ? setByHand(within) : undefined,
  );
}

/** `owner`: besides a suspension, only settings in this organization count. */
function setByHand(owner: string | undefined): SQL {
  const here = (column: string) => (owner === undefined ? sql`` : sql` and ${sql.raw(column)} = ${owner}`);
  return sql`(${person.suspendedAt} is not null
    or ${person.id} in (select m.person_id from membership m where m.source = 'hand' and m.ended_at is null${here("m.organization_id")})
    or ${person.id} in (select l.person_id from member_limit l where true${here("l.organization_id")}))`;
}

const isOver = (percent: number, owner: string | undefined) =>
  sql`${person.id} in (
    select m.person_id from usage_subject m where ${hasUsed("person", sql`m.subject_id`, percent, owner)})`;

interface Change {
  id: string;
  actor: string;
  version?: number | null | undefined;
}

/** Describes a change for the audit log; null where nothing changed. `owner`: the UUID of the organization concerned. */
type Done = {
  action: string;
  details: Record<string, unknown>;
  owner?: string | null;
  /** The subjects for which `sumEarlier` must follow the commit. */
  unsummed?: string[];
} | null;

async function changing<Refusal extends string>(
  db: Database,
  { id, actor, version }: Change,
  work: (tx: Transaction, row: PersonRow, at: Date) => Promise<Done | Refusal>,
): Promise<PersonChanged | Refusal> {
  let unsummed: string[] = [];
  const locking = (tx: Transaction) => lockPerson(tx, id);
  const answer = await keepingAdministrator(db, locking, async (tx, row): Promise<PersonChanged | Refusal> => {
    if (!row) return null;
    if (typeof version === "number" && row.version !== version) return { stale: await readLocked(tx, row.id) };
    const at = await storeNow(tx);
    const done = await work(tx, row, at);
    if (typeof done === "string") return done;
    if (done) {
      await tx.drizzle
        .update(person)
        .set({ version: row.version + 1 })
        .where(eq(person.id, row.id));
      await announceChange(tx, id);
      const { action, details, owner = null } = done;
      unsummed = done.unsummed ?? [];
      await audit(tx, at, { actor, action, owner, subject: id, details });
    }
    return readLocked(tx, row.id);
  });
  await sumAll(db, unsummed);
  return answer;
}

const readLocked = async (tx: Transaction, id: string): Promise<KnownPerson> =>
  (await readPerson(tx, eq(person.id, id)))!;

/** Ends sessions of browsers, and approvals that no device has fetched yet. */
async function endSessions(tx: Transaction, id: string): Promise<void> {
  await tx.query("delete from browser_session where person_id = $1", [id]);
  await tx.query("delete from device_request where person_id = $1", [id]);
}

/** Erases the identity of a person, and ends sessions and sign-ins. The hash of the subject stays, to recognise a return. */
async function erase(tx: Transaction, id: string, at: Date): Promise<void> {
  await tx.drizzle.delete(membership).where(eq(membership.personId, id));
  await endSessions(tx, id);
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
