/** Things of an organization, with whose they are. */
import type { KeyBudget, Team } from "../store/budget.ts";
import type { Key, Organization } from "../store/directory.ts";

export interface OwnedKey {
  key: Key;
  organization: Pick<Organization, "id" | "slug">;
}
export interface BudgetedKey extends OwnedKey {
  budget: KeyBudget;
}
export interface OwnedTeam {
  team: Team;
  organization: Pick<Organization, "id" | "slug">;
}
