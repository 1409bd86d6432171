/** `sluice team …` */

import type { Command } from "commander";
import type { LimitChanges } from "../management/limits.ts";
import { allOf, byOrganization } from "../management/page.ts";
import { Team } from "../management/teams.ts";
import { encode } from "../schema/codec.ts";
import { withManagement } from "./connect.ts";
import type { CommandContext } from "./context.ts";
import { limitOption, limitsInWords } from "./limits.ts";
import { type JsonFlag, jsonOption, missing, tell, type VersionFlag, versionOption } from "./option.ts";
import type { Services } from "./services.ts";
import { type Column, facts, instant, table } from "./table.ts";

interface TeamOptions extends JsonFlag {
  org?: string;
  name?: string;
  limit?: LimitChanges;
  keyLimit?: LimitChanges;
}

export function addTeamCommands(program: Command, { services }: CommandContext): void {
  const team = program
    .command("team")
    .description("manage teams: groups of an organization's keys with limits of their own");
  addCreate(team, services);
  addList(team, services);
  addShow(team, services);
  addUpdate(team, services);
  addRemove(team, services);
}

const limits = () => limitOption("--limit", "what the team can use");
const keyLimits = () => limitOption("--key-limit", "what each new key of the team can use");
const argument = ["<team>", "ID of the team, or with --org its name"] as const;
const organization = ["--org <org>", "slug or ID of the organization"] as const;

function addCreate(team: Command, services: Services): void {
  team
    .command("create")
    .description("create a team")
    .option(...organization)
    .option("--name <name>", "name of the team, unique in its organization")
    .addOption(limits())
    .addOption(keyLimits())
    .addOption(jsonOption())
    .addHelpText("after", createExamples)
    .action(async ({ org, name, limit, keyLimit, ...flags }: TeamOptions, command: Command) => {
      const input = { organization: org ?? missing(command, "--org"), name: name ?? missing(command, "--name") };
      const made = await withManagement(services, (manage) =>
        manage.createTeam({ ...input, limits: limit, keyLimits: keyLimit }),
      );
      tell(
        services.terminal,
        flags,
        encode(Team, made),
        `Created team '${made.name}' of ${made.organization} (${made.id}).\n` +
          `To put a key into it, run: sluice key update ID --team ${made.id}\n`,
      );
    });
}

function addList(team: Command, services: Services): void {
  team
    .command("list")
    .description("list all teams, or the teams of one organization")
    .option(...organization)
    .addOption(jsonOption())
    .action(async ({ org, ...flags }: TeamOptions) => {
      const teams = await withManagement(services, async (manage) =>
        byOrganization(await allOf((page) => manage.pageTeams({ organization: org, ...page }))),
      );
      const words = teams.length === 0 ? none : table(services.terminal, columns, teams);
      tell(
        services.terminal,
        flags,
        teams.map((one) => encode(Team, one)),
        words,
      );
    });
}

function addShow(team: Command, services: Services): void {
  team
    .command("show")
    .description("show a team and its limits")
    .argument(...argument)
    .option(...organization)
    .addOption(jsonOption())
    .action(async (name: string, { org, ...flags }: TeamOptions) => {
      const found = await withManagement(services, (manage) => manage.findTeam({ team: name, organization: org }));
      tell(services.terminal, flags, encode(Team, found), described(services, found));
    });
}

function addUpdate(team: Command, services: Services): void {
  team
    .command("update")
    .description("rename a team, or change its limits; they count at once, for running requests too")
    .argument(...argument)
    .option(...organization)
    .option("--name <name>", "new name")
    .addOption(limits())
    .addOption(keyLimits())
    .addOption(versionOption("team"))
    .addOption(jsonOption())
    .action(async (given: string, { org, name, limit, keyLimit, ifVersion, ...flags }: TeamOptions & VersionFlag) => {
      const changes = { name, limits: limit, keyLimits: keyLimit, version: ifVersion };
      const input = { team: given, organization: org, ...changes };
      const updated = await withManagement(services, (manage) => manage.updateTeam(input));
      tell(services.terminal, flags, encode(Team, updated), described(services, updated));
    });
}

function addRemove(team: Command, services: Services): void {
  team
    .command("remove")
    .description("remove a team; its keys stay and work, without its limits")
    .argument(...argument)
    .option(...organization)
    .addOption(jsonOption())
    .action(async (name: string, { org, ...flags }: TeamOptions) => {
      const removed = await withManagement(services, (manage) => manage.removeTeam({ team: name, organization: org }));
      const { keys } = removed;
      tell(
        services.terminal,
        flags,
        encode(Team, removed),
        `Removed team '${removed.name}' of ${removed.organization}. ${keys === 0 ? "It had no keys." : `Its keys (${keys}) are in no team now.`}\n`,
      );
    });
}

function described({ terminal }: Services, team: Team): string {
  return facts(terminal, [
    ["id", team.id],
    ["organization", team.organization],
    ["name", team.name],
    ["keys", String(team.keys)],
    ["limits", limitsInWords(team.limits) ?? "none of its own"],
    ["new keys get", limitsInWords(team.keyLimits) ?? "what the organization gives"],
    ["created", instant(team.createdAt)],
    ["version", String(team.version)],
  ]);
}

const columns: Column<Team>[] = [
  { head: "ID", cell: (team) => team.id },
  { head: "ORG", cell: (team) => team.organization },
  { head: "NAME", cell: (team) => team.name, breaks: true },
  { head: "KEYS", cell: (team) => String(team.keys), optional: true },
  { head: "LIMITS", cell: (team) => limitsInWords(team.limits) ?? "", breaks: true, optional: true },
];

const none = "There are no teams yet. To create one, run: sluice team create --org ORG --name NAME\n";

const createExamples = `
Examples:
  $ sluice team create --org acme --name research --limit week=2000000000
  $ sluice team create --org acme --name interns --limit month=500000000,concurrent_requests=4 --key-limit requests_per_minute=60`;
