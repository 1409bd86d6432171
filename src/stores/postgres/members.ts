/** The limits of people in organizations, over SQL functions. */
import { and, eq } from "drizzle-orm";
import { memberLimit } from "../../../db/schema.ts";
import type { Budget, MemberBudget } from "../../core/store/budget.ts";
import { bare, idOf } from "../../core/store/ids.ts";
import { budgetOf, sumEarlier } from "./budgets.ts";
import type { Database, Transaction } from "./database.ts";

type Statements = Pick<Transaction, "drizzle" | "query">;

/**
 * Gives members the limits that now count for them, in these organizations; `person` null: all of each. Called after any
 * change of a membership, of a person's limits, or of a default. Returns the subjects for which `sumEarlier` must follow.
 */
export async function refreshMembers(tx: Statements, owners: string[], person: string | null): Promise<string[]> {
  if (owners.length === 0) return [];
  // All locks are taken before the first change is noted: the row that numbers changes is a lock as well.
  await lockOrganizations(tx, owners);
  await tx.query("select usage_lock(array(select id from unnest($1::uuid[]) id order by id))", [owners]);
  const rows = await tx.query<{ id: string }>(
    "select m.id from unnest($1::uuid[]) o (id), usage_refresh_members(o.id, $2::uuid) m (id)",
    [owners, person],
  );
  return rows.map(({ id }) => id);
}

/** Locks them until the commit, in one order, so that nobody waits in a ring. */
export async function lockOrganizations(tx: Pick<Transaction, "query">, owners: readonly string[]): Promise<void> {
  await tx.query("select id from organization where id = any ($1::uuid[]) order by id for no key update", [owners]);
}

/** Calls `sumEarlier` for each, after the commit. */
export async function sumAll(db: Database, ids: readonly string[]): Promise<void> {
  for (const id of ids) await sumEarlier(db, id);
}

/** The UUID of the team of a person's membership in an organization; null: none. "no_membership": there is no membership. */
export async function teamOfMember(
  tx: Statements,
  owner: string,
  person: string,
): Promise<string | null | "no_membership"> {
  const rows = await tx.query<{ team: string | null }>("select team_id as team from usage_team_of($1, $2)", [
    owner,
    person,
  ]);
  return rows.length === 0 ? "no_membership" : rows[0]!.team;
}

/**
 * Moves a key of a person to the team of the membership. Each change of a membership moves the keys; this is for those that an
 * older version left where they were. Returns the subjects for which `sumAll` must follow.
 */
export async function followMembership(
  tx: Statements,
  key: { id: string; owner: string; person: string },
): Promise<string[]> {
  const astray = await tx.query(
    `select from usage_subject s, usage_team_of($2, $3) t where s.subject_id = $1 and s.team_id is distinct from t.team_id`,
    [key.id, key.owner, key.person],
  );
  return astray.length === 0 ? [] : refreshMembers(tx, [key.owner], key.person);
}

/** Counts a new key for its person. The ledger has the key already. */
export async function countInPerson(tx: Statements, key: { id: string; owner: string; person: string }): Promise<void> {
  await tx.query("update usage_subject set member_id = usage_member($2, $3) where subject_id = $1", [
    key.id,
    key.owner,
    key.person,
  ]);
}

/** A person's own limits in an organization; null if none are set. */
export async function memberLimitOf(tx: Statements, owner: string, person: string): Promise<Budget | null> {
  const [row] = await tx.drizzle.select().from(memberLimit).where(isOf(owner, person));
  return row ? budgetOf(row) : null;
}

export async function setMemberLimit(tx: Statements, owner: string, person: string, budget: Budget | null) {
  await tx.drizzle.delete(memberLimit).where(isOf(owner, person));
  if (budget) await tx.drizzle.insert(memberLimit).values({ organizationId: owner, personId: person, ...budget });
}

const isOf = (owner: string, person: string) =>
  and(eq(memberLimit.organizationId, owner), eq(memberLimit.personId, person));

interface BudgetRow extends Budget {
  person: string;
  organization: string;
  member: string;
  is_own: boolean;
}

/** The limits that count for people, by their ids; only organizations in which they have some. */
export async function memberBudgets(
  db: Pick<Transaction, "query">,
  people: readonly string[],
): Promise<Map<string, MemberBudget[]>> {
  const rows = await db.query<BudgetRow>(reading, [people.map((id) => bare(id, "per_"))]);
  const found = new Map<string, MemberBudget[]>();
  for (const row of rows) {
    const id = idOf(row.person, "per_");
    const one = {
      memberId: idOf(row.member, "mem_"),
      organizationId: idOf(row.organization, "org_"),
      isOwn: row.is_own,
      budget: budgetOf(row),
    };
    found.set(id, [...(found.get(id) ?? []), one]);
  }
  return found;
}

const reading = `
  select s.person_id as person, s.organization_id as organization, s.subject_id as member, l.person_id is not null as is_own,
    s.session_nanos as session, s.week_nanos as week, s.month_nanos as month,
    s.concurrent_requests as "concurrentRequests", s.requests_per_minute as "requestsPerMinute",
    s.tokens_per_minute as "tokensPerMinute"
  from unnest($1::uuid[]) p (id)
  join usage_subject s on s.person_id = p.id
  left join member_limit l on l.person_id = s.person_id and l.organization_id = s.organization_id
  where coalesce(s.session_nanos, s.week_nanos, s.month_nanos, s.concurrent_requests, s.requests_per_minute,
    s.tokens_per_minute) is not null
  order by s.organization_id`;
