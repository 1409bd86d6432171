/** The STATE with which a file is compared: the organizations that it names, and all things in them. */
import type { Person } from "../../../features/identity/store/people.ts";
import type { NoticeDestination } from "../../store/notices.ts";
import { ManagementError } from "../error.ts";
import type { Key } from "../key.ts";
import { destination_default } from "../notice-words.ts";
import type { Organization } from "../organizations.ts";
import { allOf } from "../page.ts";
import type { Plan } from "../plans.ts";
import type { Team } from "../team.ts";
import type { Management } from "../verbs.ts";
import type { WholeOrganization, WithLimits } from "./kinds.ts";
import { type LimitsNow, limitsWritten } from "./limits.ts";
import { pooled } from "./pooled.ts";

export interface OrganizationState {
  organization: WholeOrganization;
  teams: WithLimits<Team>[];
  /** Keys that are not revoked. */
  keys: WithLimits<Key>[];
}

/** A person, with the person's own limits by the slugs of organizations that are not closed. */
export interface PersonState {
  person: Person;
  limits: ReadonlyMap<string, LimitsNow>;
}

export interface State {
  plans: ReadonlyMap<string, Plan>;
  organizations: ReadonlyMap<string, OrganizationState>;
  /** The current slugs of renamed organizations, by their former slugs. */
  renamed: ReadonlyMap<string, string>;
  /** The slugs of all organizations that are not closed. */
  open: ReadonlySet<string>;
  people: readonly PersonState[];
}

/**
 * The parts of an organization's state to read. A part that is not read gets the value that it has in a new
 * organization.
 */
export interface NeededState {
  /** Whether to read limits: of the organization, and of its teams and keys if these are read. */
  limits: boolean;
  notices: boolean;
  teams: boolean;
  keys: boolean;
}

/** The people to read. `by hand`: only people for whom something was set by hand. */
export type PeopleNeeded = "none" | "by hand" | "all";

/**
 * The most organizations whose lists are read one organization at a time. For more organizations, lists of everything
 * take fewer calls.
 */
const eachOwn_max = 10;

/**
 * Reads the needed parts of each organization. `needsOf` returns null for an organization of which nothing is needed.
 */
export async function readState(
  manage: Management,
  needsOf: (organization: Organization) => NeededState | null,
  people: PeopleNeeded = "none",
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
  const keysOf = listOf("keys", (filter) => allOf((page) => manage.pageKeys({ ...filter, ...page })));
  const states = await pooled(needed, async ({ organization, needs }): Promise<OrganizationState> => {
    const { slug } = organization;
    const limits = needs.limits ? await manage.findOrganizationLimits({ organization: slug }) : null;
    const limitsOf = (of: "teams" | "keys") => (needs.limits && needs[of] ? limitsIn(manage, slug, of) : new Map());
    const [teamLimits, keyLimits] = await Promise.all([limitsOf("teams"), limitsOf("keys")]);
    const notices = needs.notices ? await noticesOf(manage, slug) : null;
    const keys = needs.keys ? await keysOf(organization) : [];
    return {
      organization: { ...organization, limits, notices },
      teams: (needs.teams ? await teamsOf(organization) : []).map((team) => withLimits(team, teamLimits)),
      keys: keys.filter(({ state }) => state !== "revoked").map((key) => withLimits(key, keyLimits)),
    };
  });
  const open = new Set(all.flatMap(({ slug, status }) => (status === "closed" ? [] : [slug])));
  return {
    plans: new Map(plans.map((plan) => [plan.name, plan])),
    organizations: new Map(states.map((state) => [state.organization.slug, state])),
    renamed: new Map(all.flatMap(({ slug, formerSlugs }) => formerSlugs.map((former) => [former, slug]))),
    open,
    people: await peopleOf(manage, people, open),
  };
}

/** Reads the needed people, with their limits. People for whom nothing was set by hand have no limits of their own. */
async function peopleOf(manage: Management, needed: PeopleNeeded, open: ReadonlySet<string>): Promise<PersonState[]> {
  if (needed === "none") return [];
  const limits = await personsLimits(manage, open);
  const byHand = await allOf((page) => manage.pagePeople({ byHand: true, ...page }));
  const set = await pooled(byHand, async ({ id }): Promise<PersonState> => {
    const person = await manage.findPerson({ person: id });
    return { person, limits: limits.get(id) ?? new Map() };
  });
  if (needed === "by hand") return set;
  const read = new Set(set.map(({ person }) => person.id));
  const others = (await allOf((page) => manage.pagePeople(page))).filter(({ id }) => !read.has(id));
  return [...set, ...others.map((person) => ({ person, limits: new Map() }))];
}

/**
 * Lists the items of one organization: from the list over all organizations if that list is read, else from a list of
 * this organization.
 */
function lists<Item extends { organizationId: string }>(
  all: Promise<Item[]> | null,
  list: (filter: { organization?: string }) => Promise<Item[]>,
): (organization: Organization) => Promise<Item[]> {
  const grouped = all?.then((items) => Map.groupBy(items, ({ organizationId }) => organizationId));
  // A failure reaches the callers that await the list. Without this handler, the failure would also count as unhandled.
  grouped?.catch(() => {});
  return async ({ id, slug }) => (grouped ? ((await grouped).get(id) ?? []) : list({ organization: slug }));
}

/**
 * The organization's destination of notices, if it is a webhook. The URL of any other kind is a secret, so nothing in a
 * file could be compared with it.
 */
async function noticesOf(manage: Management, organization: string): Promise<NoticeDestination | null> {
  try {
    const found = await manage.findNotices({ organization, name: destination_default });
    return found.form === "json" ? found : null;
  } catch (cause) {
    if (cause instanceof ManagementError && cause.code === "resource_not_found") return null;
    throw cause;
  }
}

const withLimits = <Thing extends { id: string }>(thing: Thing, limits: ReadonlyMap<string, LimitsNow>) => ({
  ...thing,
  limits: limits.get(thing.id) ?? null,
});

async function limitsIn(
  manage: Management,
  organization: string,
  of: "teams" | "keys" | "people",
): Promise<Map<string, LimitsNow>> {
  const all = await allOf((page) => manage.findOrganizationLimits({ organization, of, ...page }));
  return new Map(all.map((one) => [one.subjectId, one]));
}

/** The limits of people for whom any are set, by the people's IDs and the slugs of organizations. */
async function personsLimits(manage: Management, open: ReadonlySet<string>) {
  const found = new Map<string, Map<string, LimitsNow>>();
  await pooled([...open], async (slug) => {
    for (const [id, limits] of await limitsIn(manage, slug, "people")) {
      if (Object.keys(limitsWritten(limits)).length === 0) continue;
      found.set(id, (found.get(id) ?? new Map()).set(slug, limits));
    }
  });
  return found;
}
