/** `sluice apply`: makes organizations as a file says, and nothing where they are so already. */
import type { Command } from "commander";
import { readOrganizationsFile } from "../config/organizations-file.ts";
import { readFileBounded } from "../config/source.ts";
import { type Change, changesTo, policyNames, type WantedOrganization } from "../management/difference.ts";
import type { Management } from "../management/management.ts";
import type { Organization } from "../store/directory.ts";
import { withManagement } from "./connect.ts";
import type { CommandContext } from "./context.ts";
import { type JsonFlag, jsonOption, tell } from "./option.ts";

export function addApplyCommand(program: Command, { services }: CommandContext): void {
  program
    .command("apply")
    .description("create and change organizations so that they are as a file says")
    .requiredOption("-f, --file <file>", "YAML file of organizations")
    .option("--dry-run", "show what would change, and change nothing")
    .addOption(jsonOption())
    .addHelpText("after", help)
    .action(async (options: JsonFlag & { file: string; dryRun?: true }) => {
      const bytes = readFileBounded(options.file);
      if (!bytes) throw new Error(`there is no file ${options.file}`);
      const wanted = readOrganizationsFile(bytes, options.file);
      const isDry = options.dryRun === true;
      const changes = await withManagement(services, (manage) => applied(manage, wanted, isDry));
      const lines = changes.map((change) => `${describe(change)}\n`).join("");
      const said = isDry ? "Nothing was changed: this was a dry run." : "Applied.";
      const words = changes.length === 0 ? "Everything is as the file says.\n" : `${lines}${said}\n`;
      tell(services.terminal, options, { applied: !isDry, changes }, words);
    });
}

async function applied(manage: Management, wanted: readonly WantedOrganization[], isDry: boolean): Promise<Change[]> {
  const organizations = await manage.listOrganizations();
  const existing = new Map(organizations.map((one) => [one.slug, one]));
  const plans = (await manage.listPlans()).map(({ name }) => name);
  const changes = changesTo(wanted, existing, plans);
  if (isDry) return changes;
  const plansWanted = new Map(wanted.map(({ slug, plan }) => [slug, plan]));
  for (const change of changes) {
    const { slug } = change;
    const known = existing.get(slug);
    existing.set(slug, await made(manage, change, known, plansWanted.get(slug) ?? null));
  }
  return changes;
}

/** Refused where somebody else changed the organization since it was looked at: the difference would be another one. */
function made(manage: Management, change: Change, known: Organization | undefined, plan: string | null) {
  const { slug: organization, field, to } = change;
  const input = { organization, version: known?.version ?? null };
  switch (field) {
    case "organization":
      return manage.createOrganization({ slug: organization, name: String(to), plan });
    case "plan":
      return manage.setPlan({ ...input, plan: to === null ? null : String(to) });
    case "extra_usage_cap_units":
      return manage.setExtraUsage({ ...input, capUnits: to === null ? null : Number(to) });
    case "name":
      return manage.renameOrganization({ ...input, name: String(to) });
    case "status":
      return setStatus(manage, input, to);
    default:
      return manage.updatePolicies({ ...input, [policyNames[field]]: to });
  }
}

function setStatus(manage: Management, input: { organization: string; version: number | null }, to: Change["to"]) {
  if (to === "closed") return manage.closeOrganization(input);
  return to === "suspended" ? manage.suspendOrganization(input) : manage.resumeOrganization(input);
}

function describe({ slug, field, from, to }: Change): string {
  if (field === "organization") return `+ ${slug}: created, with the name ${to}`;
  return `~ ${slug}: ${field} ${from ?? "none"} → ${to ?? "none"}`;
}

const help = `
The file names organizations by their slugs. A field that is left out stays as
it is, and so does an organization that is left out.

  organizations:
    acme:
      name: Acme, Inc.
      plan: pro
    globex:
      plan: starter
      status: suspended
      extra_usage_cap_units: 20000000   # null: off
      key_lifetime_max_days: 90         # null: no limit
      key_unused_max_days: 30           # null: no limit
      keeps_content: false

Examples:
  $ sluice apply -f organizations.yaml --dry-run
  $ sluice apply -f organizations.yaml`;
