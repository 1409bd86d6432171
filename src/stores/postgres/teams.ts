/**
 * Administration of teams. Every act locks its organization's row first, so that acts run one after another, and then
 * takes the ledger's lock.
 */
import { and, eq, getTableColumns, gt, isNull, type SQL, sql } from "drizzle-orm";
import { organization, team, usageSubject } from "../../../db/schema.ts";
import type { TeamAdministration } from "../../admin/store/administration.ts";
import { noBudget } from "../../admin/store/budget.ts";
import type { StoredTeam } from "../../admin/store/team.ts";
import type { Budget } from "../../core/store/budget.ts";
import { bare, uuid_max, uuidOf } from "../../core/store/ids.ts";
import { appendAuditEntry, creating, storeNow } from "./acts.ts";
import { budgetShown, setTeam } from "./budgets.ts";
import { type Changeable, change, changeAnyVersion } from "./change.ts";
import type { Database, Transaction } from "./database.ts";
import { countInPerson } from "./members.ts";
import { type LimitOwner, writeValue } from "./own-value.ts";
import { refreshLimits } from "./refresh-limits.ts";
import { announceChange } from "./revocations.ts";
import { idIn, pageIn, unwrapErrors, uuidIfAny } from "./rows.ts";
import { hasUsed } from "./standing.ts";

/** Selects complete teams, with the slugs of their organizations and the number of their keys. */
const teamsIn = (db: Pick<Transaction, "drizzle">) =>
  db.drizzle
    .select({
      ...getTableColumns(team),
      id: idIn(team.id, "team_"),
      organizationId: idIn(team.organizationId, "org_"),
      organization: organization.slug,
      keys: sql<number>`(select count(*) from usage_subject s where s.team_id = ${team.id})`,
    })
    .from(team)
    .innerJoin(organization, eq(organization.id, team.organizationId));

export function teams(db: Database): TeamAdministration {
  return {
    createTeam: (input) =>
      creating(db, input, async (tx) => {
        const owner = bare(input.organizationId, "org_");
        const id = bare(input.id, "team_");
        await lockOrganization(tx, owner);
        if (await hasTeam(tx, owner, eq(team.name, input.name))) return "name_taken";
        const at = await storeNow(tx);
        const { name, limits, actor } = input;
        await tx.drizzle.insert(team).values({ id, organizationId: owner, name, createdAt: at });
        await setTeam(tx, { id, owner, team: null });
        await limitNew(tx, { subject: id, owner, at, actor }, limits);
        const details = { name, limits: budgetShown(limits) };
        await appendAuditEntry(tx, at, { actor, action: "team.create", owner, subject: input.id, details });
        return (await readTeam(tx, id))!;
      }),

    async listTeams(organizationId) {
      const owner = uuidOf(organizationId, "org_");
      if (owner === null) return [];
      return unwrapErrors(teamsIn(db).where(isThere(owner)).orderBy(team.id));
    },

    async pageTeams({ organizationId, after, limit, overPercent: over }) {
      const owner = organizationId === undefined ? undefined : bare(organizationId, "org_");
      const wanted = and(
        isThere(owner),
        after === undefined ? undefined : gt(team.id, uuidOf(after, "team_") ?? uuid_max),
        over === undefined ? undefined : hasUsed("team", team.id, over, owner),
      );
      return pageIn(teamsIn(db).where(wanted).orderBy(team.id), limit);
    },

    async findTeam(id, which) {
      const uuid = uuidOf(id, "team_");
      return uuid === null ? null : unwrapErrors(readTeam(db, uuid, which));
    },

    updateTeam: (input, patch) =>
      change(db, changeableTeam, input, async (tx, { now, owner }) => {
        const { name = now.name } = patch(now);
        if (name === now.name) return null;
        if (await hasTeam(tx, owner, eq(team.name, name))) return "name_taken";
        await tx.drizzle
          .update(team)
          .set({ name })
          .where(eq(team.id, bare(now.id, "team_")));
        return { action: "team.update", details: { name, before: { name: now.name } } };
      }),

    removeTeam: (id, actor) =>
      changeAnyVersion(db, changeableTeam, { id, actor }, async (tx, { now, owner }, at) => {
        const uuid = bare(id, "team_");
        await tx.query("delete from limit_value where subject_id = $1", [uuid]);
        await tx.drizzle.update(team).set({ removedAt: at }).where(eq(team.id, uuid));
        await tx.query(liftingModels, [uuid]);
        await setTeam(tx, { id: uuid, owner, team: null });
        await tx.drizzle.update(usageSubject).set({ teamId: null }).where(eq(usageSubject.teamId, uuid));
        const unsummed = await refreshLimits(tx, owner, null);
        return { action: "team.remove", details: { name: now.name, keys: now.keys }, gone: now, unsummed };
      }),
  };
}

const liftingModels = `select usage_set_models_subject(parent_id, models, organization_id, array_fill(null::bigint, array[6]))
  from usage_subject where parent_id = $1`;

/** How a team is changed. The row of its organization is locked first. */
export const changeableTeam: Changeable<{ now: StoredTeam; owner: string; version: number }, StoredTeam> = {
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
  bump: (tx, { now }) => tx.query("update team set version = version + 1 where id = $1", [bare(now.id, "team_")]),
  owner: ({ owner }) => owner,
  announce: (tx, { now }) => announceChange(tx, now.organizationId),
};

/** Whether the organization has this team, which then stays until the commit. Null is no team, and always allowed. */
export async function mayJoin(tx: Transaction, owner: string, teamId: string | null): Promise<boolean> {
  if (teamId === null) return true;
  await lockOrganization(tx, owner);
  return hasTeam(tx, owner, eq(team.id, bare(teamId, "team_")));
}

/**
 * Makes the use of a new key count in its team's and its person's use and sets the key's own limits, in the transaction
 * that creates it.
 */
export async function countNewKey(
  tx: Transaction,
  key: { id: string; owner: string; teamId: string | null; person: string | null; at: Date; own?: NewOwn },
): Promise<void> {
  const { id, owner, teamId, person, at, own } = key;
  await lockOrganization(tx, owner);
  // A key that has neither a team nor a person nor limits of its own is not in the ledger.
  if (teamId !== null || person !== null) await setTeam(tx, { id, owner, team: uuidIfAny(teamId, "team_") });
  if (person !== null) await countInPerson(tx, { id, owner, person });
  await limitNew(tx, { subject: id, owner, at, actor: own?.actor ?? "service" }, own?.limits ?? noBudget);
}

interface NewOwn {
  limits: Budget;
  actor: string;
}

/** Sets the own limits of a newly created subject, which has no earlier use. */
async function limitNew(tx: Transaction, limited: LimitOwner, limits: Budget): Promise<void> {
  const { subject, owner, at } = limited;
  await writeValue(tx, limited, { kind: "own", models: "", to: limits });
  await refreshLimits(tx, owner, [subject]);
  await tx.drizzle.update(usageSubject).set({ summedAt: at }).where(eq(usageSubject.subjectId, subject));
}

export async function lockOrganization(tx: Transaction, owner: string): Promise<void> {
  // The row is not locked `for update`: the creation of a key takes a shared lock on this row, too, and two creations
  // would wait for each other.
  await tx.drizzle
    .select({ id: organization.id })
    .from(organization)
    .where(eq(organization.id, owner))
    .for("no key update");
}

/** SQL for teams that were not removed, of one organization or of all. */
const isThere = (owner: string | undefined): SQL | undefined =>
  and(owner === undefined ? undefined : eq(team.organizationId, owner), isNull(team.removedAt));

async function hasTeam(tx: Transaction, owner: string, which: SQL): Promise<boolean> {
  const rows = await tx.drizzle
    .select({ id: team.id })
    .from(team)
    .where(and(isThere(owner), which));
  return rows.length > 0;
}

async function readTeam(
  tx: Pick<Transaction, "drizzle">,
  id: string,
  which?: { isOrWas: true },
): Promise<StoredTeam | null> {
  return (await teamsIn(tx).where(and(eq(team.id, id), which ? undefined : isNull(team.removedAt))))[0] ?? null;
}
