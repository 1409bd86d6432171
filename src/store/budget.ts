/**
 * The limits of keys and teams beside their organization's plan (docs/design/usage.md, Budgets). The ledger counts them
 * (ledger.ts); an administrator sets them here.
 */
import type { Page, PageOf, Repeat, Repeated } from "./page.ts";
import { noLimits, type PlanLimits } from "./plan.ts";

/** Whose limit it was. */
export type LimitedBy = "organization" | "team" | "key";

/** Limits in the units of a plan. Null does not limit. */
export type Budget = PlanLimits;

const { name: _, ...unlimited } = noLimits;
export const noBudget: Budget = Object.freeze(unlimited);

/** A named group of keys in an organization. */
export interface Team {
  /** `team_` + UUIDv7 hex. */
  id: string;
  organizationId: string;
  /** Unique in its organization. */
  name: string;
  createdAt: Date;
  budget: Budget;
  /** The limits that a new key of the team gets. Null: those of a new key of the organization. */
  keyDefault: Budget | null;
  /** Keys that are in it, revoked ones included. */
  keys: number;
  /** Rises with each change of its own; keys come and go without. */
  version: number;
}

/** The limits of a key, and its team. */
export interface KeyBudget {
  team: Pick<Team, "id" | "name"> | null;
  budget: Budget;
}

/** The state that somebody else has written meanwhile. */
export interface Overtaken<State> {
  now: State;
}

export interface BudgetAdministration {
  createTeam(input: {
    id: string;
    organizationId: string;
    name: string;
    budget: Budget;
    keyDefault: Budget | null;
    actor: string;
    repeat?: Repeat | undefined;
  }): Promise<Team | "name_taken" | Repeated>;
  /** Lists the teams that were not removed, the oldest first. */
  listTeams(organizationId: string): Promise<Team[]>;
  /** Pages through the teams of one organization or of all, in the order in which they were made. */
  pageTeams(page: Page & { organizationId?: string | undefined }): Promise<PageOf<Team>>;
  findTeam(id: string): Promise<Team | null>;
  /** Unless it is no longer as `before` says, or has another version than the one given. */
  updateTeam(
    team: { readonly id: string; readonly version?: number | null },
    before: Team,
    change: Pick<Team, "name" | "budget" | "keyDefault">,
    actor: string,
  ): Promise<Team | "name_taken" | Overtaken<Team> | null>;
  /** Its keys stay, in no team. Null: there is no such team any more. */
  removeTeam(id: string, actor: string): Promise<Team | null>;

  keyBudget(keyId: string): Promise<KeyBudget>;
  /**
   * Unless it is no longer as `before` says, or the key has another version than the one given. Null: there is no such
   * key, or no such team of its organization.
   */
  setKeyBudget(
    key: { readonly id: string; readonly version?: number | null },
    before: KeyBudget,
    change: { teamId: string | null; budget: Budget },
    actor: string,
  ): Promise<KeyBudget | Overtaken<KeyBudget> | null>;
  /** The limits that a new key of an organization gets; null: none. */
  keyDefault(organizationId: string): Promise<Budget | null>;
  /** Unless the organization has another version than the one given. */
  setKeyDefault(
    organizationId: string,
    budget: Budget | null,
    actor: string,
    version?: number | null,
  ): Promise<Overtaken<Budget | null> | null>;
}
