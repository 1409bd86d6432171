/** Teams and limits over maps: the rules of src/core/store/budget.ts, nothing more. */
import { isDeepStrictEqual } from "node:util";
import {
  type Budget,
  type BudgetAdministration,
  type KeyBudget,
  noBudget,
  type Team,
} from "../../../src/core/store/budget.ts";
import type { Raise, RaiseAdministration } from "../../../src/core/store/raise.ts";

export function memoryBudgets(now: () => Date): BudgetAdministration & RaiseAdministration {
  const teams = new Map<string, Team>();
  const keys = new Map<string, { teamId: string | null; budget: Budget }>();
  const defaults = new Map<string, Budget>();
  const memberDefaults = new Map<string, Budget>();
  const raises = new Map<string, Raise>();
  const inForce = (id: string): Raise[] => [raises.get(id)].flatMap((one) => (one && one.until > now() ? one : []));
  const isTaken = (organizationId: string, name: string) =>
    [...teams.values()].some((team) => team.organizationId === organizationId && team.name === name);
  const current = (id: string): Team | null => {
    const team = teams.get(id);
    const members = [...keys.values()].filter(({ teamId }) => teamId === id);
    return team ? structuredClone({ ...team, keys: members.length }) : null;
  };
  const budgetOf = (keyId: string): KeyBudget => {
    const { teamId, budget } = keys.get(keyId) ?? { teamId: null, budget: { ...noBudget } };
    const team = teamId === null ? null : current(teamId);
    return { team: team && { id: team.id, name: team.name }, budget };
  };
  return {
    raises: async (ids) => new Map(ids.flatMap((id) => inForce(id).map((raise) => [id, raise] as const))),
    async setRaise({ id }, raise, setBy) {
      if (raise === null) return inForce(id).length > 0 && raises.delete(id) ? "ended" : "none";
      if (raise.until <= now()) return "past";
      const set = { ...raise, setAt: now(), setBy };
      raises.set(id, set);
      return set;
    },
    memberId: async (_, personId) => personId.replace("per_", "mem_"),
    async createTeam({ id, organizationId, name, budget, keyDefault, memberDefault = null }) {
      if (isTaken(organizationId, name)) return "name_taken";
      const limits = { budget, keyDefault, memberDefault };
      teams.set(id, { id, organizationId, name, ...limits, createdAt: now(), keys: 0, version: 1 });
      return current(id)!;
    },
    listTeams: async (organizationId) =>
      [...teams.values()].flatMap((team) => (team.organizationId === organizationId ? current(team.id)! : [])),
    async pageTeams({ organizationId, after = "", limit }) {
      const found = [...teams.values()].filter(
        ({ id, organizationId: owner }) => id > after && (organizationId ?? owner) === owner,
      );
      return { items: found.slice(0, limit).map(({ id }) => current(id)!), hasMore: found.length > limit };
    },
    findTeam: async (id) => current(id),
    async updateTeam({ id, version }, before, change) {
      const is = current(id);
      if (!is) return null;
      if (typeof version === "number" && is.version !== version) return { now: is };
      if (!isDeepStrictEqual({ ...is, version: 0 }, { ...before, version: 0 })) return { now: is };
      if (change.name !== is.name && isTaken(is.organizationId, change.name)) return "name_taken";
      teams.set(id, { ...is, ...change, version: is.version + 1 });
      return current(id);
    },
    async removeTeam(id) {
      const removed = current(id);
      teams.delete(id);
      for (const key of keys.values()) if (key.teamId === id) key.teamId = null;
      return removed;
    },
    keyBudget: async (keyId) => budgetOf(keyId),
    keyBudgets: async (keyIds) => new Map(keyIds.map((keyId) => [keyId, budgetOf(keyId)])),
    async setKeyBudget({ id }, before, change) {
      const is = budgetOf(id);
      if (!isDeepStrictEqual(is, before)) return { now: is };
      keys.set(id, { ...change });
      return budgetOf(id);
    },
    keyDefault: async (organizationId) => defaults.get(organizationId) ?? null,
    memberDefault: async (organizationId) => memberDefaults.get(organizationId) ?? null,
    async setMemberDefault(organizationId, budget) {
      if (budget) memberDefaults.set(organizationId, budget);
      else memberDefaults.delete(organizationId);
      return null;
    },
    async setKeyDefault(organizationId, budget) {
      if (budget) defaults.set(organizationId, budget);
      else defaults.delete(organizationId);
      return null;
    },
  };
}
