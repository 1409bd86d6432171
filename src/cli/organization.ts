/** `sluice org …` */
import type { Command } from "commander";
import { slug } from "../auth/wish.ts";
import type { Organization } from "../store/directory.ts";
import type { Building } from "./building.ts";
import { jsonOption, missing, printJson } from "./option.ts";
import { refusalOf } from "./question.ts";
import { reached } from "./reach.ts";
import type { Services } from "./services.ts";
import { organizationJson } from "./shown.ts";
import { addSubscriptionCommands } from "./subscription.ts";
import { facts, grouped, instant, table } from "./table.ts";

interface Format {
  json?: boolean;
}

export function addOrganizationCommands(program: Command, building: Building): void {
  const { services } = building;
  const org = program.command("org").description("organizations: who may use the service, and on which plan");

  org
    .command("create")
    .description("create an organization")
    .argument("[slug]", "its short name: lower-case letters, digits, hyphens")
    .option("--name <name>", "its name for people (default: the slug)")
    .option("--plan <plan>", "its plan (default: starter); see: sluice plan list")
    .addOption(jsonOption())
    .addHelpText("after", createExamples)
    .action(async (given: string | undefined, options: Format & { name?: string; plan?: string }, command: Command) => {
      const word = given ?? (await askSlug(services, options)) ?? missing(command, "the organization's SLUG");
      const organization = await reached(services, (manage) =>
        manage.createOrganization({ slug: word, name: options.name, plan: options.plan }),
      );
      if (options.json) return printJson(services.terminal, organizationJson(organization));
      services.terminal.out(
        `Created the organization ${organization.slug} (${organization.id}) on the plan ${organization.plan}.\n` +
          `Give it a key: sluice key create --org ${organization.slug} --name NAME\n`,
      );
    });

  org
    .command("list")
    .description("list all organizations")
    .addOption(jsonOption())
    .action(async (options: Format) => {
      const organizations = await reached(services, (manage) => manage.listOrganizations());
      if (options.json) return printJson(services.terminal, organizations.map(organizationJson));
      services.terminal.out(organizations.length === 0 ? none : table(services.terminal, columns, organizations));
    });

  for (const [name, description, act] of [
    ["show", "show an organization", "findOrganization"],
    ["suspend", "refuse all requests of an organization until it is resumed", "suspendOrganization"],
    ["resume", "serve a suspended organization again", "resumeOrganization"],
  ] as const) {
    org
      .command(name)
      .description(description)
      .argument("<org>", "its slug or id")
      .addOption(jsonOption())
      .action(async (given: string, options: Format) => {
        const organization = await reached(services, (manage) => manage[act]({ organization: given }));
        if (options.json) return printJson(services.terminal, organizationJson(organization));
        services.terminal.out(
          name === "show"
            ? shownOrganization(services, organization)
            : `The organization ${organization.slug} is ${organization.status}.\n`,
        );
      });
  }
  addSubscriptionCommands(org, building);
}

async function askSlug({ terminal, prompts }: Services, { json }: Format): Promise<string | null> {
  if (json || !terminal.interactive) return null;
  return (await prompts()).text({ message: "A short name for the organization", check: refusalOf(slug) });
}

function shownOrganization({ terminal }: Services, organization: Organization): string {
  const { enabled, capUnits } = organization.extraUsage;
  const next = organization.nextAnchor;
  return facts(terminal, [
    ["id", organization.id],
    ["slug", organization.slug],
    ["name", organization.name],
    ["status", organization.status],
    ["plan", organization.plan ?? "none: inference is refused"],
    [
      "extra usage",
      enabled ? (capUnits === null ? "on" : `on, up to ${grouped(capUnits)} units a billing month`) : "off",
    ],
    ["billing anchor", instant(organization.anchorAt)],
    ["next anchor", next && `${instant(next.anchorAt)}, from ${instant(next.countsFrom)} on`],
    ["created", instant(organization.createdAt)],
  ]);
}

const columns = [
  { head: "SLUG", cell: (one: Organization) => one.slug },
  { head: "NAME", cell: (one: Organization) => one.name, breaks: true },
  { head: "STATUS", cell: (one: Organization) => one.status },
  { head: "PLAN", cell: (one: Organization) => one.plan ?? "none" },
  { head: "ID", cell: (one: Organization) => one.id, optional: true },
  { head: "CREATED", cell: (one: Organization) => one.createdAt.toISOString().slice(0, 10), optional: true },
];

const none = "There are no organizations yet. Create one: sluice org create SLUG\n";

const createExamples = `
Examples:
  $ sluice org create acme
  $ sluice org create acme --name "Acme, Inc." --plan pro --json`;
