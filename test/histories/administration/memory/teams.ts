// Does in memory what src/stores/postgres/teams.ts does.

import type { TeamAdministration } from "../../../../src/admin/store/administration.ts";
import type { StoredTeam } from "../../../../src/admin/store/team.ts";
import { audit, refreshLimits, saysAny, setTeam, setValue } from "./acts.ts";
import type { MemoryDatabase, MemoryTransaction } from "./memory.ts";
import { type Reading, type TeamRow, teamIn } from "./tables.ts";

type Verbs = "createTeam" | "listTeams" | "findTeam" | "updateTeam" | "removeTeam";

export function teams(db: MemoryDatabase): Pick<TeamAdministration, Verbs> {
  const { memory } = db;
  return {
    createTeam: ({ id, organizationId, name, limits, actor }) =>
      db.transaction(async (tx) => {
        await tx.lock(organizationId, "no key update");
        if (isTaken(tx, organizationId, name)) return "name_taken";
        tx.set("teams", id, { id, organizationId, name, version: 1, isRemoved: false });
        await setTeam(tx, { id, organizationId, teamId: null });
        const place = { subjectId: id, kind: "own", models: "" } as const;
        const row = { ...place, organizationId, limits, until: null, setAt: tx.now, setBy: actor };
        if (saysAny(limits)) setValue(tx, place, row);
        await refreshLimits(tx, organizationId, [id]);
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
        const { name = now.name } = patch(now);
        if (name === now.name) return now;
        if (isTaken(tx, now.organizationId, name)) return "name_taken";
        tx.set("teams", id, { ...tx.get("teams", id)!, name, version: now.version + 1 });
        await audit(tx);
        return readTeam(tx, id);
      }),

    removeTeam: (id) =>
      db.transaction(async (tx) => {
        const removed = await lockTeam(tx, id);
        if (!removed) return null;
        const { organizationId } = removed;
        for (const value of tx.all("values")) if (value.subjectId === id) setValue(tx, value, null);
        tx.set("teams", id, { ...tx.get("teams", id)!, isRemoved: true });
        await setTeam(tx, { id, organizationId, teamId: null });
        for (const subject of tx.all("subjects"))
          if (subject.teamId === id) tx.set("subjects", subject.id, { ...subject, teamId: null });
        await refreshLimits(tx, organizationId, null);
        await audit(tx);
        return removed;
      }),
  };
}

/** The team, read once its organization is locked. */
export async function lockTeam(tx: MemoryTransaction, id: string): Promise<StoredTeam | null> {
  await tx.statement();
  const found = readTeam(tx, id);
  if (!found) return null;
  await tx.lock(found.organizationId, "no key update");
  await tx.statement();
  return readTeam(tx, id);
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
    keys: of.all("subjects").filter(({ teamId }) => teamId === id).length,
    version,
  };
}
