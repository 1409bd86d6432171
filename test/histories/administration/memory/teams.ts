// src/stores/postgres/teams.ts in memory.

import { isDeepStrictEqual } from "node:util";
import { type Budget, type KeyBudget, noBudget, type Team } from "../../../../src/core/store/budget.ts";
import type { Administration } from "../../../../src/core/store/directory.ts";
import { audit, limitedOnly, refreshMembers, setSubject } from "./acts.ts";
import type { MemoryDatabase, MemoryTransaction } from "./memory.ts";
import { type Reading, type TeamRow, teamIn } from "./tables.ts";

type Verbs = "createTeam" | "listTeams" | "findTeam" | "updateTeam" | "removeTeam" | "keyBudget" | "setKeyBudget";
type Defaults = "keyDefault" | "memberDefault" | "setKeyDefault" | "setMemberDefault";

export function teams(db: MemoryDatabase): Pick<Administration, Verbs> {
  const { memory } = db;
  return {
    createTeam: ({ id, organizationId, name, budget, keyDefault, memberDefault = null }) =>
      db.transaction(async (tx) => {
        await tx.lock(organizationId, "no key update");
        if (isTaken(tx, organizationId, name)) return "name_taken";
        tx.set("teams", id, { id, organizationId, name, version: 1, isRemoved: false });
        await setSubject(tx, { id, organizationId, teamId: null, budget });
        setDefaults(tx, id, { keyDefault, memberDefault });
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

    updateTeam: ({ id, version }, before, change) =>
      db.transaction(async (tx) => {
        const { organizationId } = before;
        await tx.lock(organizationId, "no key update");
        await tx.statement();
        const now = readTeam(tx, id);
        if (!now) return null;
        const isOther = typeof version === "number" && now.version !== version;
        if (isOther || !isDeepStrictEqual(settable(now), settable(before))) return { now };
        if (isDeepStrictEqual(settable(now), settable(change))) return now;
        if (change.name !== now.name && isTaken(tx, organizationId, change.name)) return "name_taken";
        tx.set("teams", id, { ...tx.get("teams", id)!, name: change.name, version: now.version + 1 });
        await setSubject(tx, { id, organizationId, teamId: null, budget: change.budget });
        setDefaults(tx, id, change);
        await refreshMembers(tx, organizationId, null);
        await audit(tx);
        return readTeam(tx, id);
      }),

    removeTeam: (id) =>
      db.transaction(async (tx) => {
        await tx.statement();
        const found = readTeam(tx, id);
        if (!found) return null;
        const { organizationId } = found;
        await tx.lock(organizationId, "no key update");
        await tx.statement();
        const removed = readTeam(tx, id);
        if (!removed) return null;
        await setSubject(tx, { id, organizationId, teamId: null, budget: noBudget });
        await tx.statement();
        for (const subject of tx.all("subjects"))
          if (subject.teamId === id) tx.set("subjects", subject.id, { ...subject, teamId: null });
        setDefaults(tx, id, { keyDefault: null, memberDefault: null });
        await refreshMembers(tx, organizationId, null);
        tx.set("teams", id, { ...tx.get("teams", id)!, isRemoved: true });
        await audit(tx);
        return removed;
      }),

    async keyBudget(id) {
      await memory.scheduler.turn();
      return readKeyBudget(memory, id);
    },

    setKeyBudget: ({ id, version }, before, { teamId, budget }) =>
      db.transaction(async (tx) => {
        const owner = tx.get("keys", id)?.organizationId;
        if (owner === undefined) return null;
        await tx.lock(owner, "no key update");
        await tx.lock(id);
        const key = tx.get("keys", id)!;
        const now = readKeyBudget(tx, id);
        if ((typeof version === "number" && key.version !== version) || !isDeepStrictEqual(now, before)) return { now };
        if (teamId !== null && teamIn(tx, teamId)?.organizationId !== owner) return null;
        if (teamId === (now.team?.id ?? null) && isDeepStrictEqual(budget, now.budget)) return now;
        await setSubject(tx, { id, organizationId: owner, teamId, budget });
        tx.set("keys", id, { ...key, version: key.version + 1 });
        await audit(tx);
        return readKeyBudget(tx, id);
      }),
  };
}

/** What an organization gives to its new keys and to its members. */
export function defaults(db: MemoryDatabase): Pick<Administration, Defaults> {
  const { memory } = db;
  const read = async (table: "keyDefaults" | "memberDefaults", id: string) => {
    await memory.scheduler.turn();
    return memory.get(table, id) ?? null;
  };
  const set = (table: "keyDefaults" | "memberDefaults", id: string, budget: Budget | null, version?: number | null) =>
    db.transaction(async (tx) => {
      await tx.lock(id);
      const row = tx.get("organizations", id)!;
      const before = tx.get(table, id) ?? null;
      if (typeof version === "number" && row.version !== version) return { now: before };
      if (isDeepStrictEqual(before, budget)) return null;
      tx.set(table, id, table === "memberDefaults" ? limitedOnly(budget) : budget);
      tx.set("organizations", id, { ...row, version: row.version + 1 });
      if (table === "memberDefaults") await refreshMembers(tx, id, null);
      await audit(tx);
      return null;
    });
  return {
    keyDefault: (id) => read("keyDefaults", id),
    memberDefault: (id) => read("memberDefaults", id),
    setKeyDefault: (id, budget, _, version) => set("keyDefaults", id, budget, version),
    setMemberDefault: (id, budget, _, version) => set("memberDefaults", id, budget, version),
  };
}

function setDefaults(
  tx: MemoryTransaction,
  id: string,
  { keyDefault, memberDefault }: Pick<Team, "keyDefault" | "memberDefault">,
): void {
  tx.set("keyDefaults", id, keyDefault);
  tx.set("memberDefaults", id, limitedOnly(memberDefault));
}

const isTaken = (of: Reading, organizationId: string, name: string) =>
  of.all("teams").some((one) => one.organizationId === organizationId && one.name === name && !one.isRemoved);

function readTeam(of: Reading, id: string): Team | null {
  const row = teamIn(of, id);
  return row && teamFrom(of, row);
}

function teamFrom(of: Reading, { id, organizationId, name, version }: TeamRow): Team {
  return {
    id,
    organizationId,
    name,
    createdAt: of.now,
    budget: of.get("subjects", id)?.budget ?? noBudget,
    keyDefault: of.get("keyDefaults", id) ?? null,
    memberDefault: of.get("memberDefaults", id) ?? null,
    keys: of.all("subjects").filter(({ teamId }) => teamId === id).length,
    version,
  };
}

function readKeyBudget(of: Reading, id: string): KeyBudget {
  const subject = of.get("subjects", id);
  const team = subject?.teamId ? of.get("teams", subject.teamId)! : null;
  return { team: team && { id: team.id, name: team.name }, budget: subject?.budget ?? noBudget };
}

const settable = ({
  name,
  budget,
  keyDefault,
  memberDefault,
}: Pick<Team, "name" | "budget" | "keyDefault" | "memberDefault">) => ({
  name,
  budget,
  keyDefault,
  memberDefault,
});
