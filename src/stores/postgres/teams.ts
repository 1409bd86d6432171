/**
 * Administration of teams, and of the limits of keys. Every act locks its organization's row first, so that acts come
 * one after another, and then takes the ledger's lock. The state that the caller has read is compared with the current
 * one, so that nobody overwrites what they did not see.
 */
import { isDeepStrictEqual } from "node:util";
import { and, count, eq, gt, isNull, type SQL, sql } from "drizzle-orm";
import * as schema from "../../../db/schema.ts";
import { apiKey, organization, team, usageSubject } from "../../../db/schema.ts";
import {
  type Budget,
  type BudgetAdministration,
  type KeyBudget,
  noBudget,
  type Overtaken,
  type Team,
} from "../../core/store/budget.ts";
import { bare, idOf, uuid_max, uuidOf } from "../../core/store/ids.ts";
import { act, audit, repeated, storeNow, unrepeated } from "./acts.ts";
import {
  budgetOf,
  budgetShown,
  type DefaultTable,
  defaultOf,
  isLimited,
  setDefault,
  setSubject,
  subjectOf,
  sumEarlier,
} from "./budgets.ts";
import type { Database, Transaction } from "./database.ts";
import { countInPerson, refreshMembers, sumAll } from "./members.ts";
import { announceChange } from "./revocations.ts";
import { plainly } from "./rows.ts";
import { hasUsed } from "./standing.ts";

type TeamRow = typeof team.$inferSelect;

export function teams(db: Database): BudgetAdministration {
  return {
    createTeam: (input) =>
      act(db, async (tx) => {
        const owner = bare(input.organizationId, "org_");
        const id = bare(input.id, "team_");
        const before = await repeated(tx, input.repeat, input.actor, input.id);
        if (before) return before;
        await lockOrganization(tx, owner);
        if (await hasTeam(tx, owner, eq(team.name, input.name))) {
          await unrepeated(tx, input.repeat, input.actor);
          return "name_taken";
        }
        const at = await storeNow(tx);
        const { name, budget, keyDefault, memberDefault = null } = input;
        await tx.drizzle.insert(team).values({ id, organizationId: owner, name, createdAt: at });
        await setSubject(tx, { id, organization: owner, team: null, budget });
        // It has no earlier use, because it has had no members.
        await tx.drizzle.update(usageSubject).set({ summedAt: at }).where(eq(usageSubject.subjectId, id));
        await setDefaults(tx, id, { keyDefault, memberDefault });
        const details = listed({ name, budget, keyDefault, memberDefault });
        await audit(tx, at, { actor: input.actor, action: "team.create", owner, subject: input.id, details });
        return (await readTeam(tx, id))!;
      }),

    async listTeams(organizationId) {
      const owner = uuidOf(organizationId, "org_");
      if (owner === null) return [];
      const rows = await plainly(db.drizzle.select().from(team).where(isThere(owner)).orderBy(team.id));
      return plainly(teamsOf(db, rows));
    },

    async pageTeams({ organizationId, after, limit, over }) {
      const owner = organizationId === undefined ? undefined : bare(organizationId, "org_");
      const wanted = and(
        isThere(owner),
        after === undefined ? undefined : gt(team.id, uuidOf(after, "team_") ?? uuid_max),
        over === undefined ? undefined : hasUsed("team", team.id, over, owner),
      );
      const page = db.drizzle
        .select()
        .from(team)
        .where(wanted)
        .orderBy(team.id)
        .limit(limit + 1);
      const rows = await plainly(page);
      return { items: await plainly(teamsOf(db, rows.slice(0, limit))), hasMore: rows.length > limit };
    },

    async findTeam(id) {
      const uuid = uuidOf(id, "team_");
      return uuid === null ? null : plainly(readTeam(db, uuid));
    },

    async updateTeam({ id: teamId, version }, before, change, actor) {
      const id = bare(teamId, "team_");
      const owner = bare(before.organizationId, "org_");
      const unsummed: string[] = [];
      const answer = await act(db, async (tx) => {
        await lockOrganization(tx, owner);
        const now = await readTeam(tx, id);
        if (!now) return null;
        // The version that was read with `before` is not compared: somebody may have written between the two reads.
        const isOther = typeof version === "number" && now.version !== version;
        if (isOther || !isDeepStrictEqual(settable(now), settable(before))) return { now };
        if (isDeepStrictEqual(settable(now), settable(change))) return now;
        if (change.name !== now.name && (await hasTeam(tx, owner, eq(team.name, change.name)))) return "name_taken";
        await tx.drizzle
          .update(team)
          .set({ name: change.name, version: now.version + 1 })
          .where(eq(team.id, id));
        if (await setSubject(tx, { id, organization: owner, team: null, budget: change.budget })) unsummed.push(id);
        await setDefaults(tx, id, change);
        unsummed.push(...(await refreshMembers(tx, [owner], null)));
        const details = { ...listed(change), before: listed(now) };
        await announceChange(tx, before.organizationId);
        await audit(tx, await storeNow(tx), { actor, action: "team.update", owner, subject: teamId, details });
        return readTeam(tx, id);
      });
      await sumAll(db, unsummed);
      return answer;
    },

    removeTeam: (id, actor) =>
      act(db, async (tx) => {
        const uuid = uuidOf(id, "team_");
        const found = uuid && (await readTeam(tx, uuid));
        if (!found) return null;
        const owner = bare(found.organizationId, "org_");
        await lockOrganization(tx, owner);
        const removed = await readTeam(tx, uuid);
        if (!removed) return null;
        const at = await storeNow(tx);
        await setSubject(tx, { id: uuid, organization: owner, team: null, budget: noBudget });
        await tx.drizzle.update(usageSubject).set({ teamId: null }).where(eq(usageSubject.teamId, uuid));
        await setDefaults(tx, uuid, { keyDefault: null, memberDefault: null });
        await refreshMembers(tx, [owner], null);
        await tx.drizzle.update(team).set({ removedAt: at }).where(eq(team.id, uuid));
        const details = { ...listed(removed), keys: removed.keys };
        await announceChange(tx, found.organizationId);
        await audit(tx, at, { actor, action: "team.remove", owner, subject: id, details });
        return removed;
      }),

    async keyBudget(keyId) {
      const uuid = uuidOf(keyId, "key_");
      return uuid === null ? unlimitedKey : plainly(readKeyBudget(db, uuid));
    },

    async keyBudgets(keyIds) {
      const ids = keyIds.map((id) => uuidOf(id, "key_")).filter((id) => id !== null);
      const rows = await plainly(
        db.drizzle
          .select({ subject: usageSubject, group: { id: team.id, name: team.name } })
          .from(usageSubject)
          .leftJoin(team, eq(team.id, usageSubject.teamId))
          .where(sql`${usageSubject.subjectId} = any(${sql.param(ids)}::uuid[])`),
      );
      const budgets = rows.map(({ subject, group }) => ({
        team: group && { id: idOf(group.id, "team_"), name: group.name },
        budget: budgetOf(subject),
      }));
      return new Map(rows.map(({ subject }, index) => [idOf(subject.subjectId, "key_"), budgets[index]!]));
    },

    async setKeyBudget({ id: keyId, version }, before, { teamId, budget }, actor) {
      const id = bare(keyId, "key_");
      let unsummed = false;
      const answer = await act(db, async (tx) => {
        const [found] = await tx.drizzle.select({ owner: apiKey.organizationId }).from(apiKey).where(eq(apiKey.id, id));
        if (!found) return null;
        const { owner } = found;
        await lockOrganization(tx, owner);
        const [key] = await tx.drizzle.select().from(apiKey).where(eq(apiKey.id, id)).for("update");
        if (!key) return null;
        const now = await readKeyBudget(tx, id);
        if ((typeof version === "number" && key.version !== version) || !isDeepStrictEqual(now, before)) return { now };
        const group = teamId === null ? null : bare(teamId, "team_");
        if (group !== null && !(await hasTeam(tx, owner, eq(team.id, group)))) return null;
        if (teamId === (now.team?.id ?? null) && isDeepStrictEqual(budget, now.budget)) return now;
        unsummed = await setSubject(tx, { id, organization: owner, team: group, budget });
        await tx.drizzle
          .update(apiKey)
          .set({ version: key.version + 1 })
          .where(eq(apiKey.id, id));
        const details = { team_id: teamId, limits: budgetShown(budget), before: keyShown(now) };
        await announceChange(tx, keyId);
        await audit(tx, await storeNow(tx), { actor, action: "key.budget", owner, subject: keyId, details });
        return readKeyBudget(tx, id);
      });
      if (unsummed) await sumEarlier(db, id);
      return answer;
    },

    async keyDefault(organizationId) {
      const owner = uuidOf(organizationId, "org_");
      return owner === null ? null : plainly(defaultOf(db, schema.keyDefault, owner));
    },

    async memberDefault(organizationId) {
      const owner = uuidOf(organizationId, "org_");
      return owner === null ? null : plainly(defaultOf(db, schema.memberDefault, owner));
    },

    async setMemberDefault(organizationId, budget, actor, version) {
      let unsummed: string[] = [];
      const change = { organizationId, table: schema.memberDefault, budget, action: "organization.member_limits" };
      const answer = await act(db, (tx) =>
        setOrganizationDefault(tx, { ...change, actor, version }, async (owner) => {
          unsummed = await refreshMembers(tx, [owner], null);
          await announceChange(tx, organizationId);
        }),
      );
      await sumAll(db, unsummed);
      return answer;
    },

    setKeyDefault: (organizationId, budget, actor, version) => {
      const change = { organizationId, table: schema.keyDefault, budget, action: "organization.key_limits" };
      return act(db, (tx) => setOrganizationDefault(tx, { ...change, actor, version }));
    },
  };
}

interface DefaultChange {
  organizationId: string;
  table: DefaultTable;
  budget: Budget | null;
  action: string;
  actor: string;
  version: number | null | undefined;
}

/** `changed` is called with the UUID of the organization before the change is audited. */
async function setOrganizationDefault(
  tx: Transaction,
  { organizationId, table, budget, action, actor, version }: DefaultChange,
  changed: (owner: string) => Promise<void> = async () => {},
): Promise<Overtaken<Budget | null> | null> {
  const owner = bare(organizationId, "org_");
  const [row] = await tx.drizzle.select().from(organization).where(eq(organization.id, owner)).for("update");
  const before = await defaultOf(tx, table, owner);
  if (!row || (typeof version === "number" && row.version !== version)) return { now: before };
  if (isDeepStrictEqual(before, budget)) return null;
  await setDefault(tx, table, owner, table === schema.memberDefault ? limitedOnly(budget) : budget);
  await tx.drizzle
    .update(organization)
    .set({ version: row.version + 1 })
    .where(eq(organization.id, owner));
  await changed(owner);
  const details = { limits: budget && budgetShown(budget), before: before && budgetShown(before) };
  await audit(tx, await storeNow(tx), { actor, action, owner, subject: organizationId, details });
  return null;
}

/** Null in the place of limits of which none is set: the ledger does not count members without limits. */
const limitedOnly = (budget: Budget | null) => (budget && isLimited(budget) ? budget : null);

/** Sets what a team gives to its new keys and to its members. */
async function setDefaults(
  tx: Transaction,
  id: string,
  { keyDefault, memberDefault }: Pick<Team, "keyDefault" | "memberDefault">,
): Promise<void> {
  await setDefault(tx, schema.keyDefault, id, keyDefault);
  await setDefault(tx, schema.memberDefault, id, limitedOnly(memberDefault));
}

const unlimitedKey: KeyBudget = Object.freeze({ team: null, budget: noBudget });

/**
 * Reports whether the organization has this team, which then stays until the commit. Null is no team, and always
 * allowed.
 */
export async function mayJoin(tx: Transaction, owner: string, teamId: string | null): Promise<boolean> {
  if (teamId === null) return true;
  await lockOrganization(tx, owner);
  return hasTeam(tx, owner, eq(team.id, bare(teamId, "team_")));
}

/**
 * A new key's team, limits and person, in the transaction that creates it. The ledger does not know a key that has none of
 * them.
 */
export async function budgetNewKey(
  tx: Transaction,
  key: { id: string; owner: string; teamId: string | null; budget: Budget; person: string | null; at: Date },
): Promise<void> {
  const { id, owner, teamId, budget, person, at } = key;
  if (teamId === null && !isLimited(budget) && person === null) return;
  await lockOrganization(tx, owner);
  await setSubject(tx, { id, organization: owner, team: teamId === null ? null : bare(teamId, "team_"), budget });
  await tx.drizzle.update(usageSubject).set({ summedAt: at }).where(eq(usageSubject.subjectId, id));
  if (person !== null) await countInPerson(tx, { id, owner, person });
}

async function lockOrganization(tx: Transaction, owner: string): Promise<void> {
  // Not for update: a new key has shared the row, and two that did would wait for each other.
  await tx.drizzle
    .select({ id: organization.id })
    .from(organization)
    .where(eq(organization.id, owner))
    .for("no key update");
}

/** Teams that were not removed, of one organization or of all. */
const isThere = (owner: string | undefined): SQL | undefined =>
  and(owner === undefined ? undefined : eq(team.organizationId, owner), isNull(team.removedAt));

async function hasTeam(tx: Transaction, owner: string, which: SQL): Promise<boolean> {
  const rows = await tx.drizzle
    .select({ id: team.id })
    .from(team)
    .where(and(isThere(owner), which));
  return rows.length > 0;
}

async function readTeam(tx: Pick<Transaction, "drizzle">, id: string): Promise<Team | null> {
  const [row] = await tx.drizzle
    .select()
    .from(team)
    .where(and(eq(team.id, id), isNull(team.removedAt)));
  return row ? ((await teamsOf(tx, [row]))[0] ?? null) : null;
}

/** Four statements, however many teams there are. */
async function teamsOf(tx: Pick<Transaction, "drizzle">, rows: TeamRow[]): Promise<Team[]> {
  if (rows.length === 0) return [];
  // One parameter, whatever its length: with a parameter each, every number of them would be a statement of its own.
  const ids = sql`(${sql.param(rows.map(({ id }) => id))}::uuid[])`;
  const subjects = await tx.drizzle.select().from(usageSubject).where(sql`${usageSubject.subjectId} = any${ids}`);
  const defaultsIn = async (table: DefaultTable) => {
    const rows = await tx.drizzle.select().from(table).where(sql`${table.ownerId} = any${ids}`);
    return new Map(rows.map((row) => [row.ownerId, budgetOf(row)]));
  };
  const keyDefaults = await defaultsIn(schema.keyDefault);
  const memberDefaults = await defaultsIn(schema.memberDefault);
  const members = await tx.drizzle
    .select({ id: usageSubject.teamId, keys: count() })
    .from(usageSubject)
    .where(sql`${usageSubject.teamId} = any${ids}`)
    .groupBy(usageSubject.teamId);
  const budgets = new Map(subjects.map((row) => [row.subjectId, budgetOf(row)]));
  const counts = new Map(members.map(({ id, keys }) => [id, keys]));
  return rows.map((row) => ({
    id: idOf(row.id, "team_"),
    organizationId: idOf(row.organizationId, "org_"),
    name: row.name,
    createdAt: row.createdAt,
    budget: budgets.get(row.id) ?? { ...noBudget },
    keyDefault: keyDefaults.get(row.id) ?? null,
    memberDefault: memberDefaults.get(row.id) ?? null,
    keys: counts.get(row.id) ?? 0,
    version: row.version,
  }));
}

async function readKeyBudget(tx: Pick<Transaction, "drizzle">, id: string): Promise<KeyBudget> {
  const subject = await subjectOf(tx, id);
  if (!subject) return { team: null, budget: { ...noBudget } };
  const [group] = subject.team ? await tx.drizzle.select().from(team).where(eq(team.id, subject.team)) : [];
  return { team: group ? { id: idOf(group.id, "team_"), name: group.name } : null, budget: subject.budget };
}

type Settable = Pick<Team, "name" | "budget" | "keyDefault" | "memberDefault">;

const settable = ({ name, budget, keyDefault, memberDefault }: Settable): Settable => ({
  name,
  budget,
  keyDefault,
  memberDefault,
});

const listed = ({ name, budget, keyDefault, memberDefault }: Settable) => ({
  name,
  limits: budgetShown(budget),
  key_limits: keyDefault && budgetShown(keyDefault),
  ...(memberDefault && { member_limits: budgetShown(memberDefault) }),
});

const keyShown = ({ team, budget }: KeyBudget) => ({ team_id: team?.id ?? null, limits: budgetShown(budget) });
