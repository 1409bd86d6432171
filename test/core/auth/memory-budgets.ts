/**
 * The administration of teams and of subjects' limits in memory: exactly the rules of src/admin/store/administration.ts
 * and src/admin/store/limits.ts.
 */
import type { TeamAdministration } from "../../../src/admin/store/administration.ts";
import { noBudget } from "../../../src/admin/store/budget.ts";
import type { LimitAdministration, LimitSubject, SubjectLimits } from "../../../src/admin/store/limits.ts";
import type { StoredTeam } from "../../../src/admin/store/team.ts";

export function memoryBudgets(
  now: () => Date,
  slugOf: (organizationId: string) => string,
): TeamAdministration & LimitAdministration {
  const teams = new Map<string, StoredTeam>();
  const limits = new Map<string, SubjectLimits>();
  const isTaken = (organizationId: string, name: string) =>
    [...teams.values()].some((team) => team.organizationId === organizationId && team.name === name);
  const current = (id: string): StoredTeam | null => {
    const team = teams.get(id);
    return team ? structuredClone(team) : null;
  };
  const limitsOf = (subject: LimitSubject): SubjectLimits =>
    limits.get(subject.id) ?? { ...nothing, ...subject, countedId: subject.id };
  return {
    limitsOf: async (subject) => limitsOf(subject),
    pageLimits: async () => ({ items: [], hasMore: false }),
    async updateLimits(subject, { actor }, patch) {
      const is = limitsOf(subject);
      const { raises, ...values } = patch(
        is,
        limitsOf({ ...subject, subject: "organization", id: subject.organizationId }),
      );
      const set = raises?.map((raise) => ({ ...raise, setAt: now(), setBy: actor }));
      const changed = { ...is, ...values, ...(set && { raises: set }), version: is.version + 1 };
      limits.set(subject.id, changed);
      return changed;
    },
    async createTeam({ id, organizationId, name }) {
      if (isTaken(organizationId, name)) return "name_taken";
      const given = { id, organizationId, organization: slugOf(organizationId), name };
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

const nobody = {
  session: null,
  week: null,
  month: null,
  requestsPerMinute: null,
  tokensPerMinute: null,
  concurrentRequests: null,
};
const nothing: Omit<SubjectLimits, "subject" | "id" | "organizationId" | "countedId"> = {
  name: null,
  own: noBudget,
  keys: noBudget,
  members: noBudget,
  models: new Map(),
  countedModels: new Map(),
  raises: [],
  inForce: noBudget,
  origins: nobody,
  version: 1,
};
