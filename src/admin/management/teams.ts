/** Teams: groups of an organization's keys, with limits of their own (docs/design/usage.md, Budgets). */

import Type from "typebox";
import { nullable } from "../../core/protocol/shapes/contract.ts";
import { idOf } from "../../core/store/ids.ts";
import { exampleOf } from "../store/example.ts";
import type { Organization } from "../store/organization.ts";
import { flag, required } from "./command.ts";
import { type ManagementContext, reusedKey } from "./context.ts";
import { fail } from "./error.ts";
import { limitValueChanges } from "./limit-shape.ts";
import { newLimits } from "./limits.ts";
import { byOrganization, partFrom } from "./page.ts";
import * as parse from "./parse.ts";
import { examples, limitIn, managers, name, partOf, partOfIds, readers, words } from "./shapes.ts";
import { over, overFlag, withStanding, withStandings } from "./standing.ts";
import { noTeam, Team, teamColumns, teamFacts, teamNamed } from "./team.ts";
import { verbsOf } from "./verb.ts";
import { changed } from "./version.ts";

const verb = verbsOf("Teams");

const named = {
  team: words("ID of the team, or with `organization` its name."),
  organization: Type.Optional(words("Slug or ID: the team can then be given by its name.")),
};
const namedInBody = {
  team: named.team,
  organization: Type.Optional(nullable(words("Slug or ID: the team can then be given by its name."))),
};
const organizationFlag = flag("--org <org>", "slug or ID of the organization");
const teamFlag = flag("<team>", "ID of the team, or with --org its name");
export const teamVerbs = [
  verb({
    name: "pageTeams",
    route: "GET /teams",
    summary: "List teams",
    description: "Of all organizations or of one, in the order in which they were created.",
    roles: readers,
    faults: ["resource_not_found"],
    takes: Type.Object({ ...partOfIds("team"), organization: Type.Optional(words("Slug or ID.")), over }),
    answers: partOf(Team, "Teams"),
    example: { takes: {}, answer: { data: [exampleOf(Team)], nextCursor: null } },
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
      const { administration, narrowedTo } = context;
      const organizationId = await narrowedTo(input.organization);
      const page = { limit: limitIn(input), after: input.cursor, overPercent: input.over, organizationId };
      const found = await administration.pageTeams(page);
      return partFrom({ ...found, items: await withStandings(context, found.items) });
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
      limits: Type.Optional(nullable(limitValueChanges("What it can use: its own limits."))),
    }),
    answers: Team,
    example: {
      takes: { organization: "acme", name: "research", limits: { week: "20" } },
      answer: exampleOf(Team),
    },
    command: {
      words: "team create",
      description: "create a team",
      takes: {
        organization: required("--org <org>", "slug or ID of the organization"),
        name: required("--name <name>", "name of the team, unique in its organization"),
        limits: flag("--limit", "what the team can use"),
      },
      says: ({ id, name, organization }) =>
        `Created team '${name}' of ${organization} (${id}).\nTo put a key into it, run: sluice key update ID --team ${id}\n`,
      help: `
Examples:
  $ sluice team create --org acme --name research --limit month=50
  $ sluice team create --org acme --name interns --limit month=5,concurrent_requests=4`,
    },
    async act(context, input) {
      const { administration, actor, newUuid, openOrganization, repeatOf } = context;
      const organization = await openOrganization(input.organization);
      const team = await administration.createTeam({
        id: idOf(newUuid(), "team_"),
        organizationId: organization.id,
        name: input.name,
        limits: await newLimits(context, organization, { limits: input.limits, whose: "team" }),
        actor,
        repeat: repeatOf("createTeam", input),
      });
      if (team === "name_taken") fail(nameTaken(organization, input.name), "already_exists");
      if (team === "reused") return reusedKey();
      if ("repeated" in team) return teamOf(context, { team: team.repeated });
      return withStanding(context, team);
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
    answers: Team,
    example: { takes: { team: examples.team }, answer: exampleOf(Team) },
    command: {
      words: "team show",
      description: "show a team, its limits, and what it has used of them",
      takes: { team: teamFlag, organization: organizationFlag },
      says: teamFacts,
    },
    act: teamOf,
  }),
  verb({
    name: "updateTeam",
    route: "PATCH /teams/{team}",
    summary: "Change a team",
    description: "Its name. Its limits are those of `/teams/{id}/limits`.",
    roles: managers,
    kind: "change",
    faults: ["resource_not_found", "already_exists", "wrong_state", "version_conflict"],
    takes: Type.Object({
      ...namedInBody,
      name: Type.Optional(nullable(name("Its new name."))),
    }),
    answers: Team,
    example: { takes: { team: examples.team, name: "research" }, answer: exampleOf(Team) },
    command: {
      words: "team update",
      description: "rename a team",
      takes: {
        team: teamFlag,
        organization: organizationFlag,
        name: flag("--name <name>", "new name"),
      },
      versioned: "team",
      says: teamFacts,
    },
    async act(context, input) {
      const { administration, actor, openOrganization } = context;
      const { team, organization } = await ownedTeam(context, input);
      const { id } = await openOrganization(organization.id);
      const updated = await administration.updateTeam({ id: team.id, actor, version: input.version }, (now) => ({
        name: input.name ?? now.name,
      }));
      return changed(
        context,
        { read: input.version, id: team.id, announced: id },
        {
          schema: Team,
          title: ({ name }) => `Team '${name}'`,
          listed: (now) => withStanding(context, now),
          refusals: {
            gone: () => noTeam(team.id),
            name_taken: () => fail(nameTaken(organization, input.name ?? team.name), "already_exists"),
          },
        },
        updated,
      );
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
    example: { takes: { team: examples.team }, answer: exampleOf(Team) },
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
      return withStanding(context, removed);
    },
  }),
] as const;

interface NamedTeam {
  team: string;
  organization?: string | null;
}

async function teamOf(context: ManagementContext, input: NamedTeam): Promise<Team> {
  return withStanding(context, (await ownedTeam(context, input)).team);
}

async function ownedTeam(context: ManagementContext, input: NamedTeam) {
  const { organizationOf } = context;
  const owner = input.organization == null ? null : await organizationOf(input.organization);
  const team = await teamNamed(context, input.team, owner);
  return { team, organization: owner ?? (await organizationOf(team.organizationId)) };
}

const nameTaken = ({ slug }: Organization, given: string) =>
  `${slug} already has a team '${parse.excerpt(given)}'. Choose another name.`;
