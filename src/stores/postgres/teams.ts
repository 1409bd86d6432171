/**
 * Administration of teams, and of the limits that new keys and people get. Every act locks its organization's row first, so
 * that acts come one after another, and then takes the ledger's lock.
 */
import { isDeepStrictEqual } from "node:util";
import { and, count, eq, getTableColumns, gt, isNull, type SQL, sql } from "drizzle-orm";
import * as schema from "../../../db/schema.ts";
import { organization, team, usageSubject } from "../../../db/schema.ts";
import type { Administration, BudgetAdministration, GivenLimits } from "../../admin/store/administration.ts";
import type { StoredTeam } from "../../admin/store/team.ts";
import { type Budget, noBudget } from "../../core/store/budget.ts";
import { bare, idOf, uuid_max, uuidOf } from "../../core/store/ids.ts";
import { act, audit, repeated, storeNow, unrepeated } from "./acts.ts";
import { budgetOf, budgetShown, type DefaultTable, defaultOf, isLimited, setDefault, setSubject } from "./budgets.ts";
import { type Changeable, change, changeAnyVersion } from "./change.ts";
import type { Database, Transaction } from "./database.ts";
import { countInPerson, refreshMembers } from "./members.ts";
import { lockOpenOrganization, readOrganization } from "./organization-change.ts";
import { announceChange } from "./revocations.ts";
import { plainly } from "./rows.ts";
import { hasUsed } from "./standing.ts";

type TeamRow = typeof team.$inferSelect & { slug: string };

const columns = { ...getTableColumns(team), slug: organization.slug };
/** Teams with the slugs of their organizations. */
const selected = (db: Pick<Transaction, "drizzle">) =>
  db.drizzle.select(columns).from(team).innerJoin(organization, eq(organization.id, team.organizationId));

export function teams(db: Database): BudgetAdministration & Pick<Administration, "setKeyDefault" | "setMemberDefault"> {
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
        const { name, limits, keyLimits, memberLimits = null } = input;
        await tx.drizzle.insert(team).values({ id, organizationId: owner, name, createdAt: at });
        await setSubject(tx, { id, organization: owner, team: null, budget: limits });
        // It has no earlier use, because it has had no members.
        await tx.drizzle.update(usageSubject).set({ summedAt: at }).where(eq(usageSubject.subjectId, id));
        await setDefaults(tx, id, { keyLimits, memberLimits });
        const details = listed({ name, limits, keyLimits, memberLimits });
        await audit(tx, at, { actor: input.actor, action: "team.create", owner, subject: input.id, details });
        return (await readTeam(tx, id))!;
      }),

    async listTeams(organizationId) {
      const owner = uuidOf(organizationId, "org_");
      if (owner === null) return [];
      const rows = await plainly(selected(db).where(isThere(owner)).orderBy(team.id));
      return plainly(teamsOf(db, rows));
    },

    async pageTeams({ organizationId, after, limit, over }) {
      const owner = organizationId === undefined ? undefined : bare(organizationId, "org_");
      const wanted = and(
        isThere(owner),
        after === undefined ? undefined : gt(team.id, uuidOf(after, "team_") ?? uuid_max),
        over === undefined ? undefined : hasUsed("team", team.id, over, owner),
      );
      const page = selected(db)
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

    updateTeam: (input, patch) =>
      change(db, changeableTeam, input, async (tx, { now, owner }) => {
        const { name, ...wanted } = { ...settable(now), ...patch(now) };
        if (isDeepStrictEqual({ name, ...wanted }, settable(now))) return null;
        const id = bare(now.id, "team_");
        if (name !== now.name && (await hasTeam(tx, owner, eq(team.name, name)))) return "name_taken";
        await tx.drizzle.update(team).set({ name }).where(eq(team.id, id));
        const isUnsummed = await setSubject(tx, { id, organization: owner, team: null, budget: wanted.limits });
        await setDefaults(tx, id, wanted);
        const members = await refreshMembers(tx, [owner], null);
        const details = { ...listed({ name, ...wanted }), before: listed(now) };
        return { action: "team.update", details, unsummed: [...(isUnsummed ? [id] : []), ...members] };
      }),

    removeTeam: (id, actor) =>
      changeAnyVersion(db, changeableTeam, { id, actor }, async (tx, { now, owner }, at) => {
        const uuid = bare(id, "team_");
        await setSubject(tx, { id: uuid, organization: owner, team: null, budget: noBudget });
        await tx.drizzle.update(usageSubject).set({ teamId: null }).where(eq(usageSubject.teamId, uuid));
        await setDefaults(tx, uuid, { keyLimits: null, memberLimits: null });
        await refreshMembers(tx, [owner], null);
        await tx.drizzle.update(team).set({ removedAt: at }).where(eq(team.id, uuid));
        return { action: "team.remove", details: { ...listed(now), keys: now.keys }, gone: now };
      }),

    async keyDefault(organizationId) {
      const owner = uuidOf(organizationId, "org_");
      return owner === null ? null : plainly(defaultOf(db, schema.keyDefault, owner));
    },

    async memberDefault(organizationId) {
      const owner = uuidOf(organizationId, "org_");
      return owner === null ? null : plainly(defaultOf(db, schema.memberDefault, owner));
    },

    setMemberDefault: (input, patch) =>
      change(db, withDefault(schema.memberDefault), input, async (tx, row) => {
        const made = await setOrganizationDefault(tx, row, "organization.member_limits", patch);
        return made && { ...made, unsummed: await refreshMembers(tx, [row.owner], null) };
      }),

    setKeyDefault: (input, patch) =>
      change(db, withDefault(schema.keyDefault), input, (tx, row) =>
        setOrganizationDefault(tx, row, "organization.key_limits", patch),
      ),
  };
}

/** A team, with the UUID of its organization, whose row is locked first. */
const changeableTeam: Changeable<{ now: StoredTeam; owner: string; version: number }, StoredTeam> = {
  async lock(tx, id) {
    const uuid = uuidOf(id, "team_");
    const found = uuid && (await readTeam(tx, uuid));
    if (!found) return null;
    const owner = bare(found.organizationId, "org_");
    await lockOrganization(tx, owner);
    const now = await readTeam(tx, uuid);
    return now && { now, owner, version: now.version };
  },
  read: (tx, { now }) => readTeam(tx, bare(now.id, "team_")),
  bump: (tx, { now }) =>
    tx.drizzle
      .update(team)
      .set({ version: now.version + 1 })
      .where(eq(team.id, bare(now.id, "team_"))),
  owner: ({ owner }) => owner,
  announce: (tx, { now }) => announceChange(tx, now.organizationId),
};

interface DefaultRow {
  owner: string;
  version: number;
  table: DefaultTable;
  limits: Budget | null;
}

/** An organization with the limits that it gives to its new keys, or to its people. */
const withDefault = (table: DefaultTable): Changeable<DefaultRow, GivenLimits, "closed"> => ({
  async lock(tx, id) {
    const row = await lockOpenOrganization(tx, id);
    if (row === null || typeof row === "string") return row;
    return { owner: row.id, version: row.version, table, limits: await defaultOf(tx, table, row.id) };
  },
  async read(tx, { owner }) {
    const found = await readOrganization(tx, owner);
    return found && { organization: found, limits: await defaultOf(tx, table, owner) };
  },
  bump: (tx, { owner, version }) =>
    tx.drizzle
      .update(organization)
      .set({ version: version + 1 })
      .where(eq(organization.id, owner)),
  owner: ({ owner }) => owner,
});

async function setOrganizationDefault(
  tx: Transaction,
  { owner, table, limits: before }: DefaultRow,
  action: string,
  patch: (now: Budget | null) => Budget | null,
) {
  const limits = patch(before);
  if (isDeepStrictEqual(before, limits)) return null;
  await setDefault(tx, table, owner, table === schema.memberDefault ? limitedOnly(limits) : limits);
  return { action, details: { limits: limits && budgetShown(limits), before: before && budgetShown(before) } };
}

/** Null in the place of limits of which none is set: the ledger does not count members without limits. */
const limitedOnly = (budget: Budget | null) => (budget && isLimited(budget) ? budget : null);

/** Sets what a team gives to its new keys and to its members. */
async function setDefaults(
  tx: Transaction,
  id: string,
  { keyLimits, memberLimits }: Pick<StoredTeam, "keyLimits" | "memberLimits">,
): Promise<void> {
  await setDefault(tx, schema.keyDefault, id, keyLimits);
  await setDefault(tx, schema.memberDefault, id, limitedOnly(memberLimits));
}

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

export async function lockOrganization(tx: Transaction, owner: string): Promise<void> {
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

async function readTeam(tx: Pick<Transaction, "drizzle">, id: string): Promise<StoredTeam | null> {
  const [row] = await selected(tx).where(and(eq(team.id, id), isNull(team.removedAt)));
  return row ? ((await teamsOf(tx, [row]))[0] ?? null) : null;
}

/** Four statements, however many teams there are. */
async function teamsOf(tx: Pick<Transaction, "drizzle">, rows: TeamRow[]): Promise<StoredTeam[]> {
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
    organization: row.slug,
    name: row.name,
    createdAt: row.createdAt,
    limits: budgets.get(row.id) ?? { ...noBudget },
    keyLimits: keyDefaults.get(row.id) ?? null,
    memberLimits: memberDefaults.get(row.id) ?? null,
    keys: counts.get(row.id) ?? 0,
    version: row.version,
  }));
}

type Settable = Pick<StoredTeam, "name" | "limits" | "keyLimits" | "memberLimits">;

const settable = ({ name, limits, keyLimits, memberLimits }: Settable): Settable => ({
  name,
  limits,
  keyLimits,
  memberLimits,
});

const listed = ({ name, limits, keyLimits, memberLimits }: Settable) => ({
  name,
  limits: budgetShown(limits),
  key_limits: keyLimits && budgetShown(keyLimits),
  ...(memberLimits && { member_limits: budgetShown(memberLimits) }),
});
