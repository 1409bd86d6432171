/** What an administrator does with teams, and with the limits of teams and keys (docs/design/usage.md, Budgets). */

import type { Budget, Team } from "../store/budget.ts";
import { noBudget } from "../store/budget.ts";
import type { Organization } from "../store/directory.ts";
import { idOf } from "../store/ids.ts";
import { changedLimits, differencesOf, type LimitChanges, withinPlan } from "./budget-limits.ts";
import type { ManagementContext } from "./context.ts";
import { noKey, reusedKey } from "./context.ts";
import { fail, ManagementError } from "./error.ts";
import type { BudgetedKey, OwnedTeam } from "./owned.ts";
import { type Paged, type PageInput, paged, pageOf } from "./page.ts";
import * as parse from "./parse.ts";
import { lastChange, stale, type Versioned, versionIn } from "./version.ts";

/** `limits` changes the named ones; null takes a limit away. `keyLimits` are those that a new key gets; null: none. */
export interface BudgetVerbs {
  createTeam(input: {
    organization: string;
    name: string;
    limits?: LimitChanges | null;
    keyLimits?: LimitChanges | null;
  }): Promise<OwnedTeam>;
  /** Of one organization, or of all. */
  listTeams(input: { organization?: string | null }): Promise<OwnedTeam[]>;
  /** A part of them, in the order in which they were made; `limit` 1 to 1,000, else 100. */
  pageTeams(input: PageInput & { organization?: string | null }): Promise<Paged<OwnedTeam>>;
  /** `team` is an ID, or with `organization` a name; here and in every verb. */
  findTeam(input: { team: string; organization?: string | null }): Promise<OwnedTeam>;
  /** With a version, here and below: only if it is the one that was read. */
  updateTeam(
    input: {
      team: string;
      organization?: string | null;
      name?: string | null;
      limits?: LimitChanges | null;
      keyLimits?: LimitChanges | null;
    } & Versioned,
  ): Promise<OwnedTeam>;
  /** Its keys stay, in no team; what ran goes on counting where it was admitted. */
  removeTeam(input: { team: string; organization?: string | null }): Promise<OwnedTeam>;
  findKeyBudget(input: { id: string }): Promise<BudgetedKey>;
  /** Left out, the team stays; null: no team. */
  updateKeyBudget(
    input: { id: string; team?: string | null; limits?: LimitChanges | null } & Versioned,
  ): Promise<BudgetedKey>;
  /** What a new key of an organization gets, unless its team says otherwise. */
  updateKeyDefault(input: { organization: string; limits: LimitChanges } & Versioned): Promise<OrganizationDefault>;
  findKeyDefault(input: { organization: string }): Promise<OrganizationDefault>;
}

export interface OrganizationDefault {
  /** Its version rises with its limits, too. */
  organization: Pick<Organization, "id" | "slug" | "version">;
  limits: Budget | null;
}

export function budgetVerbs(context: ManagementContext): BudgetVerbs {
  const { administration, actor, announce, catalog, keyOf, narrowedTo, newUuid } = context;
  const { openOrganization, organizationOf, withOrganization } = context;

  async function planOf(organization: Organization) {
    return organization.plan === null ? null : ((await catalog()).plans.get(organization.plan) ?? null);
  }
  async function ownedTeam(input: { team: unknown; organization?: unknown }) {
    const name = parse.text(input.team, "a team's ID or name");
    const owner = parse.isAbsent(input.organization) ? null : await organizationOf(input.organization);
    const found = await teamNamed(context, name, owner);
    return { team: found, organization: owner ?? (await organizationOf(found.organizationId)) };
  }
  async function allowed(owner: Organization, budget: Budget, whose: string): Promise<Budget> {
    withinPlan(budget, await planOf(owner), whose);
    return budget;
  }
  const defaultFor = async (owner: Organization, changes: LimitChanges | null | undefined, before: Budget | null) =>
    changes == null ? before : unlessEmpty(await allowed(owner, changedLimits(changes, before ?? noBudget), "new key"));

  async function staleTeam(current: OwnedTeam, read: number): Promise<never> {
    const { team, organization } = current;
    const last = await lastChange(administration, { id: organization.id, subject: team.id });
    return stale(`Team '${team.name}'`, { now: team.version, read, current, last });
  }
  async function staleKey(current: BudgetedKey, read: number): Promise<never> {
    const { key, organization } = current;
    const last = await lastChange(administration, { id: organization.id, subject: key.id });
    return stale(`Key '${key.name}'`, { now: key.version, read, current, last });
  }

  return {
    async createTeam(input) {
      const name = parse.name(input.name, "The team's name");
      const organization = await openOrganization(input.organization);
      const team = await administration.createTeam({
        id: idOf(newUuid(), "team_"),
        organizationId: organization.id,
        name,
        budget: await allowed(organization, changedLimits(input.limits, noBudget), "team"),
        keyDefault: await defaultFor(organization, input.keyLimits, null),
        actor,
        repeat: context.repeatOf("createTeam", input),
      });
      if (team === "name_taken") fail(nameTaken(organization, name), "taken");
      if (team === "reused") return reusedKey();
      if ("repeated" in team) return ownedTeam({ team: team.repeated });
      return { team, organization };
    },
    async listTeams(input) {
      const one = await narrowedTo(input.organization);
      const organizations = one === undefined ? await administration.listOrganizations() : [await organizationOf(one)];
      const lists: OwnedTeam[] = [];
      for (const organization of organizations) {
        for (const team of await administration.listTeams(organization.id)) lists.push({ team, organization });
      }
      return lists;
    },
    async pageTeams(input) {
      const page = pageOf(input, "team_");
      const organizationId = await narrowedTo(input.organization);
      const { items, next } = paged(await administration.pageTeams({ ...page, organizationId }), ({ id }) => id);
      const owners = new Map<string, Organization>();
      for (const { organizationId: id } of items) {
        if (!owners.has(id)) owners.set(id, await organizationOf(id));
      }
      return { items: items.map((team) => ({ team, organization: owners.get(team.organizationId)! })), next };
    },
    findTeam: (input) => ownedTeam(input),
    async updateTeam(input) {
      const version = versionIn(input);
      const { team, organization } = await ownedTeam(input);
      await openOrganization(organization.id);
      if (version !== null && team.version !== version) return staleTeam({ team, organization }, version);
      const name = parse.isAbsent(input.name) ? team.name : parse.name(input.name, "The team's name");
      const budget = await allowed(organization, changedLimits(input.limits, team.budget), "team");
      const keyDefault = await defaultFor(organization, input.keyLimits, team.keyDefault);
      const change = { name, budget, keyDefault };
      const updated = await administration.updateTeam({ id: team.id, version }, team, change, actor);
      if (updated === null) noTeam(team.id);
      if (updated === "name_taken") fail(nameTaken(organization, name), "taken");
      if ("now" in updated) {
        const differences = differencesOf(team, updated.now);
        const current = { team: updated.now, organization };
        if (differences.length === 0) return staleTeam(current, version ?? team.version);
        throw new ManagementError(overtaken("team", differences), "stale", current);
      }
      await announce(organization.id);
      return { team: updated, organization };
    },
    async removeTeam(input) {
      const { team, organization } = await ownedTeam(input);
      await openOrganization(organization.id);
      const removed = (await administration.removeTeam(team.id, actor)) ?? noTeam(team.id);
      await announce(organization.id);
      return { team: removed, organization };
    },
    async findKeyBudget(input) {
      const key = await keyOf(input.id);
      return { ...(await withOrganization(key)), budget: await administration.keyBudget(key.id) };
    },
    async updateKeyBudget(input) {
      const version = versionIn(input);
      const key = await keyOf(input.id);
      const organization = await openOrganization(key.organizationId);
      const before = await administration.keyBudget(key.id);
      if (version !== null && key.version !== version) return staleKey({ key, organization, budget: before }, version);
      const budget = await allowed(organization, changedLimits(input.limits, before.budget), "key");
      const team = input.team == null ? null : await teamNamed(context, parse.text(input.team, "a team"), organization);
      const teamId = input.team === undefined ? (before.team?.id ?? null) : (team?.id ?? null);
      const updated = await administration.setKeyBudget({ id: key.id, version }, before, { teamId, budget }, actor);
      if (updated === null) return team ? noTeam(team.id) : noKey(key.id);
      if ("now" in updated) {
        const differences = differencesOf(before, updated.now);
        const current = { key: await keyOf(key.id), organization, budget: updated.now };
        // By the version alone, it is something else of the key that was changed.
        if (differences.length === 0) return staleKey(current, version ?? key.version);
        throw new ManagementError(overtaken("key", differences), "stale", current);
      }
      await announce(key.id);
      return { key: await keyOf(key.id), organization, budget: updated };
    },
    async updateKeyDefault(input) {
      const version = versionIn(input);
      const organization = await openOrganization(input.organization);
      const before = await administration.keyDefault(organization.id);
      const limits = (await defaultFor(organization, input.limits, before)) ?? null;
      const overtakenBy = await administration.setKeyDefault(organization.id, limits, actor, version);
      const current = await organizationOf(organization.id);
      if (!overtakenBy) return { organization: current, limits };
      const last = await lastChange(administration, current);
      return stale(`Organization '${current.slug}'`, { now: current.version, read: version!, current, last });
    },
    async findKeyDefault(input) {
      const organization = await organizationOf(input.organization);
      return { organization, limits: await administration.keyDefault(organization.id) };
    },
  };
}

/**
 * By its ID, or among the teams of this organization by its name. One of another organization is refused by name; to
 * whom it is out of sight, it is not there.
 */
export async function teamNamed(
  { administration, isInSight }: Pick<ManagementContext, "administration" | "isInSight">,
  name: string,
  organization: Organization | null,
): Promise<Team> {
  const found = await administration.findTeam(name);
  const byId = found && isInSight(found.organizationId) ? found : null;
  if (byId && organization && byId.organizationId !== organization.id)
    fail(`The team ${byId.id} belongs to another organization than ${organization.slug}.`);
  if (byId) return byId;
  if (!organization) return noTeam(name);
  const teams = await administration.listTeams(organization.id);
  return teams.find((team) => team.name === name) ?? noTeam(name);
}

/** Limits of a new key: what is asked for, on what its team or its organization gives. */
export async function newKeyBudget(
  context: ManagementContext,
  organization: Organization,
  input: { team?: string | null; limits?: LimitChanges | null },
): Promise<{ teamId: string | null; budget: Budget }> {
  const team = input.team == null ? null : await teamNamed(context, parse.text(input.team, "a team"), organization);
  const given = team?.keyDefault ?? (await context.administration.keyDefault(organization.id)) ?? noBudget;
  const budget = changedLimits(input.limits, given);
  const isAsked = !parse.isAbsent(input.limits);
  const plan = organization.plan === null || !isAsked ? null : (await context.catalog()).plans.get(organization.plan);
  withinPlan(budget, plan ?? null, "key");
  return { teamId: team?.id ?? null, budget };
}

export function noTeam(name: string): never {
  return fail(`There is no team '${parse.excerpt(name)}'. To list all teams, run: sluice team list`, "not_found");
}

const unlessEmpty = (budget: Budget): Budget | null =>
  Object.values(budget).every((limit) => limit === null) ? null : budget;

const nameTaken = ({ slug }: Organization, name: string) =>
  `${slug} already has a team '${parse.excerpt(name)}'. Choose another name.`;

const overtaken = (what: string, differences: string[]) =>
  `Somebody else has changed this ${what} meanwhile: ${differences.join(", ")}. Nothing was changed. Look at it again, and repeat your change if it is still right.`;
