/** A team in the management interface: its fields, example and columns, and how one is found. */

import Type from "typebox";
import type { Value } from "../../core/schema/codec.ts";
import { noBudget, type Team as StoredTeam } from "../../core/store/budget.ts";
import type { Organization } from "../../core/store/directory.ts";
import { instant as instantWritten } from "../../core/time/written.ts";
import type { Column, Facts } from "./command.ts";
import type { ManagementContext } from "./context.ts";
import { fail } from "./error.ts";
import { limitsInWords } from "./limits.ts";
import * as parse from "./parse.ts";
import { exampleRaise, raiseColumn, raiseNow } from "./raise.ts";
import { count, examples, id, instant, Limits, nullable, version } from "./shapes.ts";
import { exampleStanding, standing, standingColumn } from "./standing.ts";

const fields = {
  id: id("team"),
  organization_id: id("org"),
  organization: Type.String({ description: "The organization's slug." }),
  name: Type.String({ description: "Unique in its organization." }),
  keys: count(),
  limits: Limits,
  key_limits: nullable(Limits),
  member_limits: nullable(Limits),
  created_at: instant("When it was created."),
  version: version(),
};
export const Team = Type.Object(fields, { $id: "Team" });
export const TeamStanding = Type.Object(
  { ...fields, standing: standing(), raise: raiseNow() },
  { $id: "TeamStanding" },
);
export type TeamStanding = Value<typeof TeamStanding>;
export type Team = Value<typeof Team>;

export const research: Team = {
  id: examples.team,
  organizationId: examples.organization,
  organization: "acme",
  name: "research",
  keys: 3,
  limits: { ...noBudget, week: 2_000_000_000 },
  keyLimits: null,
  memberLimits: null,
  createdAt: examples.at,
  version: 1,
};

export const researchNow: TeamStanding = { ...research, standing: exampleStanding, raise: exampleRaise };

export const teamColumns: Column<TeamStanding>[] = [
  { head: "ID", cell: (team) => team.id },
  { head: "ORG", cell: (team) => team.organization },
  { head: "NAME", cell: (team) => team.name, breaks: true },
  { head: "KEYS", cell: (team) => String(team.keys), optional: true },
  standingColumn,
  { head: "LIMITS", cell: (team) => limitsInWords(team.limits) ?? "", breaks: true, optional: true },
  raiseColumn,
];

export function teamFacts(team: Team): Facts {
  return [
    ["id", team.id],
    ["organization", team.organization],
    ["name", team.name],
    ["keys", String(team.keys)],
    ["limits", limitsInWords(team.limits) ?? "none of its own"],
    ["new keys get", limitsInWords(team.keyLimits) ?? "what the organization gives"],
    ["each person gets", limitsInWords(team.memberLimits) ?? "what the organization gives"],
    ["created", instantWritten(team.createdAt)],
    ["version", String(team.version)],
  ];
}

export function teamRecord({
  budget,
  keyDefault,
  memberDefault,
  ...team
}: StoredTeam & { organization: string }): Team {
  return { ...team, limits: budget, keyLimits: keyDefault, memberLimits: memberDefault };
}

/**
 * Finds a team by its ID, or among the teams of this organization by its name. A team of another organization is refused
 * by name; to an actor who does not see that organization, it does not exist.
 */
export async function teamNamed(
  { administration, isInSight }: Pick<ManagementContext, "administration" | "isInSight">,
  given: string,
  organization: Organization | null,
): Promise<StoredTeam> {
  const found = await administration.findTeam(given);
  const byId = found && isInSight(found.organizationId) ? found : null;
  if (byId && organization && byId.organizationId !== organization.id)
    fail(`The team ${byId.id} belongs to another organization than ${organization.slug}.`);
  if (byId) return byId;
  if (!organization) return noTeam(given);
  const teams = await administration.listTeams(organization.id);
  return teams.find((team) => team.name === given) ?? noTeam(given);
}

export function noTeam(given: string): never {
  return fail(
    `There is no team '${parse.excerpt(given)}'. To list all teams, run: sluice team list`,
    "resource_not_found",
  );
}
