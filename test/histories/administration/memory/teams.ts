// src/stores/postgres/teams.ts in memory.

import { isDeepStrictEqual } from "node:util";
import type { Administration } from "../../../../src/admin/store/administration.ts";
import type { StoredTeam } from "../../../../src/admin/store/team.ts";
import { type Budget, noBudget } from "../../../../src/core/store/budget.ts";
import type { VersionedChange } from "../../../../src/core/store/change.ts";
import { audit, limitedOnly, refreshMembers, setSubject } from "./acts.ts";
import type { MemoryDatabase, MemoryTransaction } from "./memory.ts";
import { type Reading, type TeamRow, teamIn } from "./tables.ts";

type Verbs = "createTeam" | "listTeams" | "findTeam" | "updateTeam" | "removeTeam";
type Defaults = "keyDefault" | "memberDefault" | "setKeyDefault" | "setMemberDefault";
type DefaultPatch = (now: Budget | null) => Budget | null;
type Settable = Pick<StoredTeam, "name" | "limits" | "keyLimits" | "memberLimits">;

export function teams(db: MemoryDatabase): Pick<Administration, Verbs> {
  const { memory } = db;
  return {
    createTeam: ({ id, organizationId, name, limits, keyLimits, memberLimits = null }) =>
      db.transaction(async (tx) => {
        await tx.lock(organizationId, "no key update");
        if (isTaken(tx, organizationId, name)) return "name_taken";
        tx.set("teams", id, { id, organizationId, name, version: 1, isRemoved: false });
        await setSubject(tx, { id, organizationId, teamId: null, budget: limits });
        setDefaults(tx, id, { keyLimits, memberLimits });
        await audit(tx);
        return readTeam(tx, id)!;
      }),

    async listTeams(organizationId) {
      await memory.scheduler.turn();
      const rows = memory.all("teams").filter((one) => one.organizationId === organizationId && !one.isRemoved);
      return rows.map((row) => teamFrom(memory, row));
    },

    async findTeam(id) {
      await memory.scheduler.turn();
      return readTeam(memory, id);
    },

    updateTeam: ({ id, version }, patch) =>
      db.transaction(async (tx) => {
        const now = await lockTeam(tx, id);
        if (!now) return null;
        if (typeof version === "number" && now.version !== version) return { stale: now };
        const { organizationId } = now;
        const wanted = { ...settable(now), ...patch(now) };
        if (isDeepStrictEqual(wanted, settable(now))) return now;
        if (wanted.name !== now.name && isTaken(tx, organizationId, wanted.name)) return "name_taken";
        tx.set("teams", id, { ...tx.get("teams", id)!, name: wanted.name, version: now.version + 1 });
        await setSubject(tx, { id, organizationId, teamId: null, budget: wanted.limits });
        setDefaults(tx, id, wanted);
        await refreshMembers(tx, organizationId, null);
        await audit(tx);
        return readTeam(tx, id);
      }),

    removeTeam: (id) =>
      db.transaction(async (tx) => {
        const removed = await lockTeam(tx, id);
        if (!removed) return null;
        const { organizationId } = removed;
        await setSubject(tx, { id, organizationId, teamId: null, budget: noBudget });
        await tx.statement();
        for (const subject of tx.all("subjects"))
          if (subject.teamId === id) tx.set("subjects", subject.id, { ...subject, teamId: null });
        setDefaults(tx, id, { keyLimits: null, memberLimits: null });
        await refreshMembers(tx, organizationId, null);
        tx.set("teams", id, { ...tx.get("teams", id)!, isRemoved: true });
        await audit(tx);
        return removed;
      }),
  };
}

/** The team, once its organization is locked. */
async function lockTeam(tx: MemoryTransaction, id: string): Promise<StoredTeam | null> {
  await tx.statement();
  const found = readTeam(tx, id);
  if (!found) return null;
  await tx.lock(found.organizationId, "no key update");
  await tx.statement();
  return readTeam(tx, id);
}

/** What an organization gives to its new keys and to its members. */
export function defaults(db: MemoryDatabase): Pick<Administration, Defaults> {
  const { memory } = db;
  const read = async (table: "keyDefaults" | "memberDefaults", id: string) => {
    await memory.scheduler.turn();
    return memory.get(table, id) ?? null;
  };
  const set = (table: "keyDefaults" | "memberDefaults", { id, version }: VersionedChange, patch: DefaultPatch) =>
    db.transaction(async (tx) => {
      await tx.lock(id);
      const organization = tx.get("organizations", id);
      if (!organization) return null;
      if (organization.status === "closed") return "closed";
      const limits = tx.get(table, id) ?? null;
      const now = { organization, limits };
      if (typeof version === "number" && organization.version !== version) return { stale: now };
      const wanted = patch(limits);
      if (isDeepStrictEqual(limits, wanted)) return now;
      tx.set(table, id, table === "memberDefaults" ? limitedOnly(wanted) : wanted);
      if (table === "memberDefaults") await refreshMembers(tx, id, null);
      const changed = { ...organization, version: organization.version + 1 };
      tx.set("organizations", id, changed);
      await audit(tx);
      return { organization: changed, limits: tx.get(table, id) ?? null };
    });
  return {
    keyDefault: (id) => read("keyDefaults", id),
    memberDefault: (id) => read("memberDefaults", id),
    setKeyDefault: (change, patch) => set("keyDefaults", change, patch),
    setMemberDefault: (change, patch) => set("memberDefaults", change, patch),
  };
}

function setDefaults(
  tx: MemoryTransaction,
  id: string,
  { keyLimits, memberLimits }: Pick<StoredTeam, "keyLimits" | "memberLimits">,
): void {
  tx.set("keyDefaults", id, keyLimits);
  tx.set("memberDefaults", id, limitedOnly(memberLimits));
}

const isTaken = (of: Reading, organizationId: string, name: string) =>
  of.all("teams").some((one) => one.organizationId === organizationId && one.name === name && !one.isRemoved);

function readTeam(of: Reading, id: string): StoredTeam | null {
  const row = teamIn(of, id);
  return row && teamFrom(of, row);
}

function teamFrom(of: Reading, { id, organizationId, name, version }: TeamRow): StoredTeam {
  return {
    id,
    organizationId,
    organization: of.get("organizations", organizationId)!.slug,
    name,
    createdAt: of.now,
    limits: of.get("subjects", id)?.budget ?? noBudget,
    keyLimits: of.get("keyDefaults", id) ?? null,
    memberLimits: of.get("memberDefaults", id) ?? null,
    keys: of.all("subjects").filter(({ teamId }) => teamId === id).length,
    version,
  };
}

const settable = ({ name, limits, keyLimits, memberLimits }: Settable): Settable => ({
  name,
  limits,
  keyLimits,
  memberLimits,
});
