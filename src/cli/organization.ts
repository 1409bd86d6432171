/** `sluice org …` */
import type { Command } from "commander";
import { grouped } from "../inference/amounts.ts";
import { Organization } from "../management/organizations.ts";
import { allOf } from "../management/page.ts";
import { verbNamed } from "../management/verbs.ts";
import { encode } from "../schema/codec.ts";
import { withManagement } from "./connect.ts";
import type { CommandContext } from "./context.ts";
import { addKeyLimits } from "./key-update.ts";
import { type JsonFlag, jsonOption, missing, tell } from "./option.ts";
import { addLifeCommands, policyFacts } from "./organization-life.ts";
import type { Services } from "./services.ts";
import { addSubscriptionCommands } from "./subscription.ts";
import { facts, instant, table } from "./table.ts";
import { validator } from "./validator.ts";

export function addOrganizationCommands(program: Command, context: CommandContext): void {
  const { services } = context;
  const org = program
    .command("org")
    .alias("organization")
    .description("manage organizations, what they can use, and what they ask of keys");

  org
    .command("create")
    .description("create an organization")
    .argument("[slug]", "short name: lowercase letters, digits, and hyphens")
    .option("--name <name>", "display name (default: the slug)")
    .option("--plan <plan>", "plan (default: starter); to list plans, run: sluice plan list")
    .addOption(jsonOption())
    .addHelpText("after", createExamples)
    .action(
      async (given: string | undefined, options: JsonFlag & { name?: string; plan?: string }, command: Command) => {
        const slug = given ?? (await askSlug(services, options)) ?? missing(command, "SLUG");
        const organization = await withManagement(services, (manage) =>
          manage.createOrganization({ slug, name: options.name, plan: options.plan }),
        );
        tell(
          services.terminal,
          options,
          encode(Organization, organization),
          `Created organization ${organization.slug} (${organization.id}) on plan ${organization.plan}.\n` +
            `To create a key for it, run: sluice key create --org ${organization.slug} --name NAME\n`,
        );
      },
    );

  org
    .command("list")
    .description("list all organizations")
    .addOption(jsonOption())
    .action(async (options: JsonFlag) => {
      const organizations = await withManagement(services, (manage) => allOf((page) => manage.pageOrganizations(page)));
      const words = organizations.length === 0 ? none : table(services.terminal, columns, organizations);
      tell(
        services.terminal,
        options,
        organizations.map((one) => encode(Organization, one)),
        words,
      );
    });

  for (const [name, description, verb] of [
    ["show", "show an organization", "findOrganization"],
    ["suspend", "suspend an organization; its requests are refused until you resume it", "suspendOrganization"],
    ["resume", "resume a suspended organization", "resumeOrganization"],
  ] as const) {
    org
      .command(name)
      .description(description)
      .argument("<org>", "slug or ID of the organization")
      .addOption(jsonOption())
      .action(async (given: string, options: JsonFlag) => {
        const organization = await withManagement(services, (manage) => manage[verb]({ organization: given }));
        tell(
          services.terminal,
          options,
          encode(Organization, organization),
          name === "show"
            ? describeOrganization(services, organization)
            : `Organization ${organization.slug} is ${organization.status}.\n`,
        );
      });
  }
  addSubscriptionCommands(org, context);
  addLifeCommands(org, context);
  addKeyLimits(org, services);
}

async function askSlug({ terminal, prompts }: Services, { json }: JsonFlag): Promise<string | null> {
  if (json || !terminal.interactive) return null;
  return (await prompts()).text({
    message: "Short name (slug) of the organization",
    check: validator((slug) => verbNamed("createOrganization").take({ slug })),
  });
}

function describeOrganization({ terminal }: Services, organization: Organization): string {
  const { enabled, capUnits } = organization.extraUsage;
  const next = organization.nextAnchor;
  return facts(terminal, [
    ["id", organization.id],
    ["slug", organization.slug],
    ["former slugs", organization.formerSlugs.join(", ") || null],
    ["name", organization.name],
    ["status", organization.status],
    ["plan", organization.plan ?? "none: inference is refused"],
    [
      "extra usage",
      enabled ? (capUnits === null ? "on" : `on, up to ${grouped(capUnits)} units a billing month`) : "off",
    ],
    ["billing anchor", instant(organization.anchorAt)],
    ["next anchor", next && `${instant(next.anchorAt)}, from ${instant(next.countsFrom)} on`],
    ...policyFacts(organization),
    ["created", instant(organization.createdAt)],
    ["closed", instant(organization.closedAt)],
    ["version", String(organization.version)],
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

const none = "There are no organizations yet. To create one, run: sluice org create SLUG\n";

const createExamples = `
Examples:
  $ sluice org create acme
  $ sluice org create acme --name "Acme, Inc." --plan pro --json`;
