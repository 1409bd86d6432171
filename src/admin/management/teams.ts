/** Teams: groups of an organization's keys, with limits of their own (docs/design/usage.md, Budgets). */
import Type from "typebox";
import { noBudget, type Team as StoredTeam } from "../../core/store/budget.ts";
import type { Organization } from "../../core/store/directory.ts";
import { idOf } from "../../core/store/ids.ts";
import { flag, required } from "./command.ts";
import type { ManagementContext } from "./context.ts";
import { reusedKey } from "./context.ts";
import { fail } from "./error.ts";
import { changedLimits, differencesOf } from "./limits.ts";
import { byOrganization, partFrom } from "./page.ts";
import * as parse from "./parse.ts";
import { raiseFacts } from "./raise.ts";
import {
  examples,
  limitChanges,
  limitIn,
  managers,
  name,
  nullable,
  partOf,
  partOfIds,
  readers,
  words,
} from "./shapes.ts";
import { over, overFlag, standingFacts, withStanding, withStandings } from "./standing.ts";
import {
  noTeam,
  research,
  researchNow,
  Team,
  TeamStanding,
  teamColumns,
  teamFacts,
  teamNamed,
  teamRecord,
} from "./team.ts";
import { allowed, defaultAfter, keyDefaultOf } from "./team-limits.ts";
import { verbsOf } from "./verb.ts";
import { conflict, lastChange, overtaken, stale } from "./version.ts";

const verb = verbsOf("Teams");

const named = {
  team: words("ID of the team, or with `organization` its name."),
  organization: Type.Optional(words("Slug or ID: the team can then be given by its name.")),
};
const namedInBody = {
  team: named.team,
  organization: Type.Optional(nullable(words("Slug or ID: the team can then be given by its name."))),
};
const limits = () =>
  Type.Optional(nullable(limitChanges("What it can use. What is left out stays; null takes a limit away.")));
const organizationFlag = flag("--org <org>", "slug or ID of the organization");
const teamFlag = flag("<team>", "ID of the team, or with --org its name");
const limitFlags = {
  limits: flag("--limit", "what the team can use"),
  keyLimits: flag("--key-limit", "what each new key of the team can use"),
  memberLimits: flag("--member-limit", "what each person of the team without limits of their own can use"),
};
const keyLimits = () =>
  Type.Optional(nullable(limitChanges("What each new key of the team gets; keys that exist keep theirs.")));

const memberLimits = () =>
  Type.Optional(
    nullable(limitChanges("What each person of the team without limits of their own can use, with all keys together.")),
  );

export const teamVerbs = [
  verb({
    name: "pageTeams",
    route: "GET /teams",
    summary: "List teams",
    description: "Of all organizations or of one, in the order in which they were created.",
    roles: readers,
    faults: ["resource_not_found"],
    takes: Type.Object({ ...partOfIds("team"), organization: Type.Optional(words("Slug or ID.")), over }),
    answers: partOf(TeamStanding, "Teams"),
    example: { takes: {}, answer: { data: [researchNow], nextCursor: null } },
    command: {
      words: "team list",
      description: "list all teams, or the teams of one organization",
      takes: { organization: organizationFlag, over: overFlag("teams") },
      columns: teamColumns,
      none: ({ over }) =>
        over === undefined
          ? "There are no teams yet. To create one, run: sluice team create --org ORG --name NAME\n"
          : "There are no such teams.\n",
      parts: "all",
      order: byOrganization,
    },
    async act(context, input) {
      const { administration, narrowedTo, withSlugs } = context;
      const organizationId = await narrowedTo(input.organization);
      const page = { limit: limitIn(input), after: input.cursor, over: input.over, organizationId };
      const found = await administration.pageTeams(page);
      const teams = (await withSlugs(found.items)).map(teamRecord);
      return partFrom(found, await withStandings(context, teams), ({ id }) => id);
    },
  }),
  verb({
    name: "createTeam",
    route: "POST /teams",
    summary: "Create a team",
    description: "Its name is unique in its organization.",
    roles: managers,
    kind: "creation",
    faults: ["resource_not_found", "already_exists", "idempotency_key_reused", "wrong_state"],
    takes: Type.Object({
      organization: words("Slug or ID."),
      name: name("Its name."),
      limits: limits(),
      key_limits: keyLimits(),
      member_limits: memberLimits(),
    }),
    answers: Team,
    example: {
      takes: { organization: "acme", name: "research", limits: { week: 2_000_000_000 } },
      answer: { ...research, keys: 0 },
    },
    command: {
      words: "team create",
      description: "create a team",
      takes: {
        organization: required("--org <org>", "slug or ID of the organization"),
        name: required("--name <name>", "name of the team, unique in its organization"),
        ...limitFlags,
      },
      says: ({ id, name, organization }) =>
        `Created team '${name}' of ${organization} (${id}).\nTo put a key into it, run: sluice key update ID --team ${id}\n`,
      help: `
Examples:
  $ sluice team create --org acme --name research --limit week=2000000000
  $ sluice team create --org acme --name interns --limit month=500000000,concurrent_requests=4 --key-limit requests_per_minute=60`,
    },
    async act(context, input) {
      const { administration, actor, newUuid, openOrganization, repeatOf } = context;
      const organization = await openOrganization(input.organization);
      const team = await administration.createTeam({
        id: idOf(newUuid(), "team_"),
        organizationId: organization.id,
        name: input.name,
        budget: await allowed(context, organization, changedLimits(input.limits, noBudget), "team"),
        keyDefault: await keyDefaultOf(context, organization, input.keyLimits, null),
        memberDefault: await defaultAfter(context, organization, input.memberLimits, { before: null, whose: "person" }),
        actor,
        repeat: repeatOf("createTeam", input),
      });
      if (team === "name_taken") fail(nameTaken(organization, input.name), "already_exists");
      if (team === "reused") return reusedKey();
      if ("repeated" in team) return teamOf(context, { team: team.repeated });
      return teamRecord({ ...team, organization: organization.slug });
    },
  }),
  verb({
    name: "findTeam",
    route: "GET /teams/{team}",
    summary: "Show a team",
    description: "By its ID, or with `organization` by its name; with what it has used of its limits.",
    roles: readers,
    faults: ["resource_not_found"],
    takes: Type.Object(named),
    answers: TeamStanding,
    example: { takes: { team: examples.team }, answer: researchNow },
    command: {
      words: "team show",
      description: "show a team, its limits, and what it has used of them",
      takes: { team: teamFlag, organization: organizationFlag },
      says: (team) => [...teamFacts(team), ...raiseFacts(team.raise), ...standingFacts(team.standing)],
    },
    act: async (context, input) => withStanding(context, await teamOf(context, input)),
  }),
  verb({
    name: "updateTeam",
    route: "PATCH /teams/{team}",
    summary: "Change a team",
    description: "What is left out stays. New limits count at once, for running requests too.",
    roles: managers,
    kind: "change",
    faults: ["resource_not_found", "already_exists", "wrong_state", "version_conflict"],
    takes: Type.Object({
      ...namedInBody,
      name: Type.Optional(nullable(name("Its new name."))),
      limits: limits(),
      key_limits: keyLimits(),
      member_limits: memberLimits(),
    }),
    answers: Team,
    example: { takes: { team: examples.team, limits: { month: null } }, answer: research },
    command: {
      words: "team update",
      description: "rename a team, or change its limits; they count at once, for running requests too",
      takes: {
        team: teamFlag,
        organization: organizationFlag,
        name: flag("--name <name>", "new name"),
        ...limitFlags,
      },
      versioned: "team",
      says: teamFacts,
    },
    async act(context, input) {
      const { administration, actor, announce, openOrganization } = context;
      const { team, organization } = await ownedTeam(context, input);
      await openOrganization(organization.id);
      const refuse = async (now: StoredTeam) => {
        const last = await lastChange(administration, { id: organization.id, subject: team.id });
        const current = teamRecord({ ...now, organization: organization.slug });
        return stale(`Team '${now.name}'`, { read: input.version ?? team.version, last }, Team, current);
      };
      if (input.version !== undefined && team.version !== input.version) return refuse(team);
      const change = {
        name: input.name ?? team.name,
        budget: await allowed(context, organization, changedLimits(input.limits, team.budget), "team"),
        keyDefault: await keyDefaultOf(context, organization, input.keyLimits, team.keyDefault),
        memberDefault: await defaultAfter(context, organization, input.memberLimits, {
          before: team.memberDefault,
          whose: "person",
        }),
      };
      const updated = await administration.updateTeam(
        { id: team.id, version: input.version ?? null },
        team,
        change,
        actor,
      );
      if (updated === null) noTeam(team.id);
      if (updated === "name_taken") fail(nameTaken(organization, change.name), "already_exists");
      if ("now" in updated) {
        const differences = differencesOf(team, updated.now);
        if (differences.length === 0) return refuse(updated.now);
        const current = teamRecord({ ...updated.now, organization: organization.slug });
        return conflict(overtaken("team", differences), Team, current);
      }
      await announce(organization.id);
      return teamRecord({ ...updated, organization: organization.slug });
    },
  }),
  verb({
    name: "removeTeam",
    route: "POST /teams/{team}/remove",
    summary: "Remove a team",
    description: "Its keys stay and work, without a team. Running requests count where they were admitted.",
    roles: managers,
    kind: "act",
    faults: ["resource_not_found", "wrong_state"],
    takes: Type.Object(namedInBody),
    answers: Team,
    example: { takes: { team: examples.team }, answer: research },
    command: {
      words: "team remove",
      description: "remove a team; its keys stay and work, without its limits",
      takes: { team: teamFlag, organization: organizationFlag },
      says: ({ name, organization, keys }) =>
        `Removed team '${name}' of ${organization}. ${keys === 0 ? "It had no keys." : `Its keys (${keys}) are in no team now.`}\n`,
    },
    async act(context, input) {
      const { team, organization } = await ownedTeam(context, input);
      await context.openOrganization(organization.id);
      const removed = (await context.administration.removeTeam(team.id, context.actor)) ?? noTeam(team.id);
      await context.announce(organization.id);
      return teamRecord({ ...removed, organization: organization.slug });
    },
  }),
] as const;

interface NamedTeam {
  team: string;
  organization?: string | null;
}

async function teamOf(context: ManagementContext, input: NamedTeam): Promise<Team> {
  const { team, organization } = await ownedTeam(context, input);
  return teamRecord({ ...team, organization: organization.slug });
}

async function ownedTeam(context: ManagementContext, input: NamedTeam) {
  const { organizationOf } = context;
  const owner = input.organization == null ? null : await organizationOf(input.organization);
  const team = await teamNamed(context, input.team, owner);
  return { team, organization: owner ?? (await organizationOf(team.organizationId)) };
}

const nameTaken = ({ slug }: Organization, given: string) =>
  `${slug} already has a team '${parse.excerpt(given)}'. Choose another name.`;
