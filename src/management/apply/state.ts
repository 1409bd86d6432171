/** The STATE with which a file is compared: all that its kinds of things say of the organizations that it names. */
import { noBudget } from "../../store/budget.ts";
import type { BudgetedKey } from "../budgets.ts";
import { ManagementError } from "../error.ts";
import type { Notices } from "../notices.ts";
import type { Organization } from "../organizations.ts";
import { allOf } from "../page.ts";
import type { Plan } from "../plans.ts";
import type { Team } from "../teams.ts";
import type { Management } from "../verbs.ts";
import type { WholeOrganization } from "./kinds.ts";
import { pooled } from "./pooled.ts";

export interface OrganizationState {
  organization: WholeOrganization;
  teams: Team[];
  /** Keys that are not revoked. */
  keys: BudgetedKey[];
}

export interface State {
  plans: ReadonlyMap<string, Plan>;
  /** By slug. */
  organizations: ReadonlyMap<string, OrganizationState>;
  /** Slugs that organizations had before, and the ones that they have now. */
  renamed: ReadonlyMap<string, string>;
}

/** The parts of an organization's state that somebody needs. What is not read is as in a new organization. */
export interface Needs {
  keyLimits: boolean;
  memberLimits: boolean;
  notices: boolean;
  teams: boolean;
  keys: boolean;
}

/** From so many organizations on, the lists of all are shorter than one list for each. */
const eachOwn_max = 10;

/** Reads what is needed of each organization; null: it is not needed at all. */
export async function readState(
  manage: Management,
  needsOf: (organization: Organization) => Needs | null,
): Promise<State> {
  const plans = (await manage.listPlans()).data;
  const all = await allOf((page) => manage.pageOrganizations(page));
  const needed = all.flatMap((organization) => {
    const needs = needsOf(organization);
    return needs ? [{ organization, needs }] : [];
  });
  const isLong = needed.length > eachOwn_max;
  const listOf = <Item extends { organizationId: string }>(
    what: "teams" | "keys",
    list: (filter: { organization?: string }) => Promise<Item[]>,
  ) => lists(isLong && needed.some(({ needs }) => needs[what]) ? list({}) : null, list);
  const teamsOf = listOf("teams", (filter) => allOf((page) => manage.pageTeams({ ...filter, ...page })));
  const keysOf = listOf("keys", (filter) => allOf((page) => manage.pageKeyBudgets({ ...filter, ...page })));
  const states = await pooled(needed, async ({ organization, needs }): Promise<OrganizationState> => {
    const { slug } = organization;
    const keyLimits = needs.keyLimits ? (await manage.findKeyDefault({ organization: slug })).limits : null;
    const memberLimits = needs.memberLimits ? (await manage.findMemberDefault({ organization: slug })).limits : null;
    const notices = needs.notices ? await noticesOf(manage, slug) : null;
    const keys = needs.keys ? await keysOf(organization) : [];
    return {
      organization: { ...organization, keyLimits, memberLimits, notices },
      teams: needs.teams ? await teamsOf(organization) : [],
      keys: keys.filter(({ state }) => state !== "revoked"),
    };
  });
  return {
    plans: new Map(plans.map((plan) => [plan.name, plan])),
    organizations: new Map(states.map((state) => [state.organization.slug, state])),
    renamed: new Map(all.flatMap(({ slug, formerSlugs }) => formerSlugs.map((former) => [former, slug]))),
  };
}

/** The list of one organization: a part of the list of all, where that is read, or one of its own. */
function lists<Item extends { organizationId: string }>(
  all: Promise<Item[]> | null,
  list: (filter: { organization?: string }) => Promise<Item[]>,
): (organization: Organization) => Promise<Item[]> {
  const grouped = all?.then((items) => Map.groupBy(items, ({ organizationId }) => organizationId));
  // A failure reaches the code that awaits it.
  grouped?.catch(() => {});
  return async ({ id, slug }) => (grouped ? ((await grouped).get(id) ?? []) : list({ organization: slug }));
}

async function noticesOf(manage: Management, organization: string): Promise<Notices | null> {
  try {
    return await manage.findNotices({ organization });
  } catch (cause) {
    if (cause instanceof ManagementError && cause.code === "resource_not_found") return null;
    throw cause;
  }
}

/** The limits that a new key of this team gets. */
export function inheritedLimits({ organization, teams }: OrganizationState, team: string | null) {
  return teams.find(({ name }) => name === team)?.keyLimits ?? organization.keyLimits ?? noBudget;
}
