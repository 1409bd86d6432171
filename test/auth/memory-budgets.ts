/** Of a directory in memory: nobody there has a team or limits. Those are tried against a database. */
import { type BudgetAdministration, noBudget } from "../../src/store/budget.ts";

export function memoryBudgets(): BudgetAdministration {
  const unable = async () => {
    throw new Error("a directory in memory has no teams and no limits");
  };
  return {
    createTeam: unable,
    listTeams: async () => [],
    findTeam: async () => null,
    updateTeam: unable,
    removeTeam: unable,
    keyBudget: async () => ({ team: null, budget: noBudget }),
    setKeyBudget: unable,
    keyDefault: async () => null,
    setKeyDefault: unable,
  };
}
