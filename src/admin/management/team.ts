/**
 * A team in the management interface: the team as the store returns it, the used share of its limits, and the look-up
 * of a team.
 */

import Type from "typebox";
import type { Value } from "../../core/schema/codec.ts";
import { instant as instantWritten } from "../../core/time/written.ts";
import type { Organization } from "../store/organization.ts";
import { type StoredTeam, teamFields } from "../store/team.ts";
import type { Column, Facts } from "./command.ts";
import type { ManagementContext } from "./context.ts";
import { fail } from "./error.ts";
import * as parse from "./parse.ts";
import { standing, standingColumn, standingFacts } from "./standing.ts";

export const Team = Type.Object({ ...teamFields, standing: standing() }, { $id: "Team" });
export type Team = Value<typeof Team>;

export const teamColumns: Column<Team>[] = [
  { head: "ID", cell: (team) => team.id },
  { head: "ORG", cell: (team) => team.organization },
  { head: "NAME", cell: (team) => team.name, breaks: true },
  { head: "KEYS", cell: (team) => String(team.keys), optional: true },
  standingColumn,
];

export function teamFacts(team: Team): Facts {
  return [
    ["id", team.id],
    ["organization", team.organization],
    ["name", team.name],
    ["keys", String(team.keys)],
    ...standingFacts(team.standing),
    ["created", instantWritten(team.createdAt)],
    ["version", String(team.version)],
  ];
}

/**
 * Finds a team by its ID, or among the teams of this organization by its name. A team of another organization is
 * refused by name; an actor who does not see that organization is told that the team does not exist. `isOrWas`: a
 * removed team is also found by its ID.
 */
export async function teamNamed(
  { administration, isInSight }: Pick<ManagementContext, "administration" | "isInSight">,
  given: string,
  organization: Organization | null,
  which?: { isOrWas: true },
): Promise<StoredTeam> {
  const found = await administration.findTeam(given, which);
  const byId = found && isInSight(found.organizationId) ? found : null;
  if (byId && organization && byId.organizationId !== organization.id)
    fail(`The team ${byId.id} belongs to another organization than ${organization.slug}.`);
  if (byId) return byId;
  if (!organization) return noTeam(given);
  const teams = await administration.listTeams(organization.id);
  return teams.find((team) => team.name === given) ?? noTeam(given);
}

export function noTeam(given: string): never {
  return parse.missing("team", given, " teams", "team list");
}
