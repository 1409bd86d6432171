/**
 * The limits of keys, people and teams beside their organization's plan (docs/design/usage.md, Budgets). The ledger counts them
 * (ledger.ts); an administrator sets them here.
 */
import type { OverShare, Page, PageOf, Repeat, Repeated } from "./page.ts";
import { noLimits, type PlanLimits } from "./plan.ts";

/** The kinds of subjects that have limits. */
export type LimitedBy = "organization" | "team" | "person" | "key";

/** Limits in the units of a plan. Null means no limit. */
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
  /** The limits of each member of the team without limits of their own. Null: those that the organization gives. */
  memberDefault: Budget | null;
  /** The keys in the team, revoked ones included. */
  keys: number;
  /** Rises with each change of the team itself, and not when keys join or leave. */
  version: number;
}

/** The limits of a key, and its team. */
export interface KeyBudget {
  team: Pick<Team, "id" | "name"> | null;
  budget: Budget;
}

/** The limits that count for a person in an organization. */
export interface MemberBudget {
  /** `mem_` + hex, by which the ledger and standings name the person there. */
  memberId: string;
  organizationId: string;
  /** Whether they were set for the person alone. Else they come from the team or the organization. */
  isOwn: boolean;
  budget: Budget;
}

/** The change was not made, because another writer came first: the state now. */
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
    memberDefault?: Budget | null;
    actor: string;
    repeat?: Repeat | undefined;
  }): Promise<Team | "name_taken" | Repeated>;
  /** Lists the teams that were not removed, the oldest first. */
  listTeams(organizationId: string): Promise<Team[]>;
  /** Returns a page of the teams of one organization or of all, in the order of their creation. */
  pageTeams(page: Page & OverShare & { organizationId?: string | undefined }): Promise<PageOf<Team>>;
  findTeam(id: string): Promise<Team | null>;
  /** Does nothing if the team is no longer as `before` says, or has another version than the given one. */
  updateTeam(
    team: { readonly id: string; readonly version?: number | null },
    before: Team,
    change: Pick<Team, "name" | "budget" | "keyDefault" | "memberDefault">,
    actor: string,
  ): Promise<Team | "name_taken" | Overtaken<Team> | null>;
  /** Its keys stay, without a team. Null if the team does not exist any more. */
  removeTeam(id: string, actor: string): Promise<Team | null>;

  keyBudget(keyId: string): Promise<KeyBudget>;
  /** The same for many keys at once, by their IDs; keys without a team and a limit are left out. */
  keyBudgets(keyIds: readonly string[]): Promise<ReadonlyMap<string, KeyBudget>>;
  /**
   * Does nothing if the key is no longer as `before` says, or has another version than the given one. Null if the key
   * does not exist, or its organization has no such team.
   */
  setKeyBudget(
    key: { readonly id: string; readonly version?: number | null },
    before: KeyBudget,
    change: { teamId: string | null; budget: Budget },
    actor: string,
  ): Promise<KeyBudget | Overtaken<KeyBudget> | null>;
  /** The limits that a new key of an organization gets; null if it gets none. */
  keyDefault(organizationId: string): Promise<Budget | null>;
  /** The limits of each member of an organization without limits of their own or of the team; null if there are none. */
  memberDefault(organizationId: string): Promise<Budget | null>;
  /** Does nothing if the organization has another version than the given one. */
  setMemberDefault(
    organizationId: string,
    budget: Budget | null,
    actor: string,
    version?: number | null,
  ): Promise<Overtaken<Budget | null> | null>;
  /** Does nothing if the organization has another version than the given one. */
  setKeyDefault(
    organizationId: string,
    budget: Budget | null,
    actor: string,
    version?: number | null,
  ): Promise<Overtaken<Budget | null> | null>;
}
