/** Teams and limits over maps: the rules of src/core/store/budget.ts, nothing more. */
import type { BudgetAdministration } from "../../../src/admin/store/administration.ts";
import type { StoredTeam } from "../../../src/admin/store/team.ts";
import type { Raise, RaiseAdministration } from "../../../src/core/store/raise.ts";

export function memoryBudgets(
  now: () => Date,
  slugOf: (organizationId: string) => string,
): Omit<BudgetAdministration, `${"key" | "member"}Default`> & RaiseAdministration {
  const teams = new Map<string, StoredTeam>();
  const raises = new Map<string, Raise>();
  const inForce = (id: string): Raise[] => [raises.get(id)].flatMap((one) => (one && one.until > now() ? one : []));
  const isTaken = (organizationId: string, name: string) =>
    [...teams.values()].some((team) => team.organizationId === organizationId && team.name === name);
  const current = (id: string): StoredTeam | null => {
    const team = teams.get(id);
    return team ? structuredClone(team) : null;
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
    async createTeam({ id, organizationId, name, limits, keyLimits, memberLimits = null }) {
      if (isTaken(organizationId, name)) return "name_taken";
      const given = { id, organizationId, organization: slugOf(organizationId), name, limits, keyLimits, memberLimits };
      teams.set(id, { ...given, createdAt: now(), keys: 0, version: 1 });
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
    async updateTeam({ id, version }, patch) {
      const is = current(id);
      if (!is) return null;
      if (typeof version === "number" && is.version !== version) return { stale: is };
      const change = patch(is);
      if (change.name && change.name !== is.name && isTaken(is.organizationId, change.name)) return "name_taken";
      teams.set(id, { ...is, ...change, version: is.version + 1 });
      return current(id);
    },
    async removeTeam(id) {
      const removed = current(id);
      teams.delete(id);
      return removed;
    },
  };
}
