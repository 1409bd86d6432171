/** `sluice org …` */
import type { Command } from "commander";
import { verbNamed } from "../management/verbs.ts";
import type { CommandContext } from "./context.ts";
import { addKeyLimits, addMemberLimits } from "./key-update.ts";
import { type JsonFlag, jsonOption, missing } from "./option.ts";
import { addClose, addPolicy } from "./organization-life.ts";
import { runVerb } from "./run-verb.ts";
import type { Services } from "./services.ts";
import { addExtraUsage, addPlan } from "./subscription.ts";
import { validator } from "./validator.ts";
import { addVerbCommands } from "./verb-command.ts";

export function addOrganizationCommands(program: Command, context: CommandContext): void {
  const org = program
    .command("org")
    .alias("organization")
    .description("manage organizations, their limits, and their policies for keys");
  addVerbCommands(org, context, [
    addCreate,
    "list",
    "show",
    "suspend",
    "resume",
    addPlan,
    "anchor",
    addExtraUsage,
    "rename",
    addPolicy,
    addClose,
    addKeyLimits,
    addMemberLimits,
  ]);
}

function addCreate(org: Command, { services }: CommandContext): void {
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
        const { name, plan } = options;
        await runVerb(
          services,
          options,
          "createOrganization",
          { slug, name, plan },
          (made) =>
            `Created organization ${made.slug} (${made.id}) on plan ${made.plan}.\n` +
            `To create a key for it, run: sluice key create --org ${made.slug} --name NAME\n`,
        );
      },
    );
}

async function askSlug({ terminal, prompts }: Services, { json }: JsonFlag): Promise<string | null> {
  if (json || !terminal.interactive) return null;
  return (await prompts()).text({
    message: "Short name (slug) of the organization",
    check: validator((slug) => verbNamed("createOrganization").take({ slug })),
  });
}

const createExamples = `
Examples:
  $ sluice org create acme
  $ sluice org create acme --name "Acme, Inc." --plan pro --json`;
