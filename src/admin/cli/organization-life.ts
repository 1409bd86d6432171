/** `sluice org policy|close`: the policies of an organization, and its end. */
import { type Command, InvalidArgumentError } from "commander";
import { encode } from "../../core/schema/codec.ts";
import { Organization, policyFacts } from "../management/organizations.ts";
import { withManagement } from "./connect.ts";
import type { CommandContext } from "./context.ts";
import { type JsonFlag, jsonOption, printAnswer, type VersionFlag, versionOption } from "./option.ts";
import { runVerb } from "./run-verb.ts";
import type { Services } from "./services.ts";
import { facts } from "./table.ts";

const argument = ["<org>", "slug or ID of the organization"] as const;

interface PolicyFlags extends JsonFlag, VersionFlag {
  keyLifetime?: Days;
  keyUnused?: Days;
  content?: boolean;
}

export function addPolicy(org: Command, { services }: CommandContext): void {
  org
    .command("policy")
    .description("show or set how long the keys of an organization live, and whether content is kept")
    .argument(...argument)
    .option("--key-lifetime <days>", "how long a key works from when it is made or rotated: 90d, or none", days)
    .option("--key-unused <days>", "how long a key works from its last use: 30d, or none", days)
    .option("--content <keep|none>", "none deletes the stored responses and stores no more", contentFlag)
    .addOption(versionOption("organization"))
    .addOption(jsonOption())
    .addHelpText("after", policyExamples)
    .action(async (organization: string, options: PolicyFlags) => {
      const { keyLifetime, keyUnused, content, ifVersion } = options;
      const changes = {
        ...(keyLifetime === undefined ? {} : { keyLifetimeMaxDays: daysOf(keyLifetime) }),
        ...(keyUnused === undefined ? {} : { keyUnusedMaxDays: daysOf(keyUnused) }),
        ...(content === undefined ? {} : { keepsContent: content }),
      };
      const isRead = Object.keys(changes).length === 0;
      const found = await withManagement(services, (manage) =>
        isRead
          ? manage.findOrganization({ organization })
          : manage.updatePolicies({ organization, ...changes, version: ifVersion }),
      );
      const words = facts(services.terminal, policyFacts(found)) + (isRead ? "" : endedBy(found));
      printAnswer(services.terminal, options, encode(Organization, found), words);
    });
}

/** How to list the keys that a change of policies has ended. */
function endedBy({ slug, keyLifetimeMaxDays, keyUnusedMaxDays }: Organization): string {
  const states = [
    ...(keyLifetimeMaxDays === null ? [] : ["expired"]),
    ...(keyUnusedMaxDays === null ? [] : ["unused"]),
  ];
  return states
    .map((state) => `To list keys that it ended, run: sluice key list --org ${slug} --state ${state}\n`)
    .join("");
}

export function addClose(org: Command, { services }: CommandContext): void {
  org
    .command("close")
    .description("close an organization for good: its keys are revoked; its records are kept for 13 months")
    .argument(...argument)
    .option("-y, --yes", "skip the confirmation prompt")
    .addOption(versionOption("organization"))
    .addOption(jsonOption())
    .action(async (organization: string, options: JsonFlag & VersionFlag & { yes?: boolean }) => {
      if (!options.yes) await confirmClosing(services, organization, options);
      const input = { organization, version: options.ifVersion };
      await runVerb(services, options, "closeOrganization", input, ({ slug }) => `Organization ${slug} is closed.\n`);
    });
}

/** Closing cannot be undone: without a prompt, it needs --yes. */
async function confirmClosing(services: Services, organization: string, { json }: JsonFlag): Promise<void> {
  if (json || !services.terminal.interactive) {
    throw new Error("Closing an organization cannot be undone. To close it without a prompt, use --yes.");
  }
  const { slug } = await withManagement(services, (manage) => manage.findOrganization({ organization }));
  const question = `Close ${slug} for good? Its keys are revoked, its stored responses are deleted, and it cannot be opened again.`;
  if (!(await (await services.prompts()).confirm(question))) throw new Error("Nothing was closed.");
}

/** `none` stands for null, which the parser of options would make an empty text. */
type Days = number | "none";
const daysOf = (given: Days) => (given === "none" ? null : given);

/** `90d`, `90` or `none`. */
function days(value: string): Days {
  const count = /^(\d{1,4})d?$/.exec(value.trim())?.[1];
  if (value.trim() === "none") return "none";
  if (count !== undefined && Number(count) > 0) return Number(count);
  throw new InvalidArgumentError("Specify days, such as 90d, or none.");
}

function contentFlag(value: string): boolean {
  if (value === "keep" || value === "none") return value === "keep";
  throw new InvalidArgumentError("Specify keep or none.");
}

const policyExamples = `
Examples:
  $ sluice org policy acme --key-lifetime 90d --key-unused 30d
  $ sluice org policy acme --key-unused none
  $ sluice org policy acme --content none`;
