/** `sluice key create`: prints the key, once. */
import type { Command } from "commander";
import type { Scope } from "../../core/store/directory.ts";
import type { LimitChanges } from "../management/limits.ts";
import { allOf } from "../management/page.ts";
import { verbNamed } from "../management/verbs.ts";
import { withManagement } from "./connect.ts";
import type { CommandContext } from "./context.ts";
import { secretWords } from "./key-facts.ts";
import { allowFromOption, type KeyOptions, labelOption, ownerOption } from "./key-options.ts";
import { limitOption } from "./limits.ts";
import { type JsonFlag, jsonOption, missing, names } from "./option.ts";
import { runVerb } from "./run-verb.ts";
import type { Services } from "./services.ts";
import { validator } from "./validator.ts";

interface CreateOptions extends JsonFlag, KeyOptions {
  org?: string;
  name?: string;
  scopes?: Scope[];
  models?: string[];
  expires?: string;
  team?: string;
  person?: string;
  limit?: LimitChanges;
}

export function addKeyCreate(key: Command, { services }: CommandContext): void {
  key
    .command("create")
    .description("create a key and print it once")
    .usage("[options] --org <org> --name <name>")
    .option("--org <org>", "slug or ID of the organization")
    .option("--name <name>", "name of the key, such as what it is for")
    .option("--scopes <list>", "any of models:read, inference:create, usage:read (default: all three)", names)
    .option("--models <list>", "IDs of the models that the key can use (default: every model)", names)
    .option("--expires <instant>", "when the key expires: ISO 8601 with a time zone, or a date in UTC (default: never)")
    .addOption(ownerOption())
    .addOption(labelOption("a label"))
    .addOption(allowFromOption("addresses and networks that can use the key (default: all)"))
    .option("--team <team>", "ID or name of a team of the organization")
    .option("--person <person>", "ID of the person whose key it is; it is in the team of the membership")
    .addOption(limitOption("--limit", "what the key can use (default: what its team or its organization gives)"))
    .addOption(jsonOption())
    .addHelpText("after", createExamples)
    .action(async (options: CreateOptions, command: Command) => {
      const { org, name } = await promptForMissing(services, options, command);
      const { scopes, models, expires, owner, team, person } = options;
      const { label: labels, allowFrom: addresses, limit: limits } = options;
      const choices = { scopes, models, expires, owner, labels, addresses, team, person, limits };
      await runVerb(services, options, "createKey", { organization: org, name, ...choices }, (made) =>
        secretWords(services, made, `Created key '${made.name}' of ${made.organization} (${made.id}).`),
      );
    });
}

/** The organization and the name; prompts for them if they are missing and the terminal is interactive. */
async function promptForMissing(
  services: Services,
  { org, name, json }: CreateOptions,
  command: Command,
): Promise<{ org: string; name: string }> {
  const ask = services.terminal.interactive && !json;
  if (org === undefined && !ask) missing(command, "--org");
  if (name === undefined && !ask) missing(command, "--name");
  return { org: org ?? (await askOrganization(services)), name: name ?? (await askName(services)) };
}

async function askName(services: Services): Promise<string> {
  return (await services.prompts()).text({
    message: "Name of the key, such as what it is for",
    check: validator((name) => verbNamed("createKey").take({ organization: "any", name })),
  });
}

async function askOrganization(services: Services): Promise<string> {
  const all = await withManagement(services, (manage) => allOf((page) => manage.pageOrganizations(page)));
  const organizations = all.filter(({ status }) => status !== "closed");
  if (organizations.length === 0)
    throw new Error("There are no organizations yet. To create one, run: sluice org create SLUG");
  return (await services.prompts()).select({
    message: "Which organization is the key for?",
    options: organizations.map(({ slug, name }) => ({
      value: slug,
      label: name === slug ? slug : `${slug} (${name})`,
    })),
  });
}

const createExamples = `
Examples:
  $ sluice key create --org acme --name "build server"
  $ sluice key create --org acme --name reports --scopes usage:read --expires 2030-01-31T12:00:00Z --json
  $ sluice key create --org acme --name deploy --owner ann --label stage=production --allow-from 10.0.0.0/8
  $ sluice key create --org acme --name editor --models acme/writer-1,acme/writer-2`;
