/** `sluice apply`: makes organizations as a file says, and nothing where they are so already. */
import type { Command } from "commander";
import { readOrganizationsFile } from "../config/organizations-file.ts";
import { readFileBounded } from "../config/source.ts";
import { type Change, changesTo, policyNames, type WantedOrganization } from "../management/difference.ts";
import { type KeyDifference, keyDifferences } from "../management/key-difference.ts";
import type { Organization } from "../management/organizations.ts";
import { allOf } from "../management/page.ts";
import type { Management } from "../management/verbs.ts";
import { makeKey, secretsFolder } from "./apply-keys.ts";
import { withManagement } from "./connect.ts";
import type { CommandContext } from "./context.ts";
import { type JsonFlag, jsonOption, tell } from "./option.ts";

export function addApplyCommand(program: Command, { services }: CommandContext): void {
  program
    .command("apply")
    .description("create and change organizations so that they are as a file says")
    .requiredOption("-f, --file <file>", "YAML file of organizations")
    .option("--dry-run", "show what would change, and change nothing")
    .option("--secrets <folder>", "where the secrets of new keys are written, each into a file of its own")
    .addOption(jsonOption())
    .addHelpText("after", help)
    .action(async (options: JsonFlag & { file: string; dryRun?: true; secrets?: string }) => {
      const bytes = readFileBounded(options.file);
      if (!bytes) throw new Error(`there is no file ${options.file}`);
      const wanted = readOrganizationsFile(bytes, options.file);
      const isDry = options.dryRun === true;
      const how = { isDry, secrets: options.secrets ?? null, now_ms: services.now_ms() };
      const { changes, keys, files } = await withManagement(services, (manage) => applied(manage, wanted, how));
      const lines = [...changes.map(describe), ...keys.flatMap(describeKey)].map((line) => `${line}\n`).join("");
      const said = isDry ? "Nothing was changed: this was a dry run." : "Applied.";
      const written = files.map((path) => `The secret of a new key is in ${path}\n`).join("");
      const words = lines === "" ? "Everything is as the file says.\n" : `${lines}${written}${said}\n`;
      const listed = keys.map(({ slug, key, wanted: { name }, changed }) => ({
        slug,
        id: key?.id ?? null,
        name,
        changed,
      }));
      tell(services.terminal, options, { applied: !isDry, changes, keys: listed, secrets: files }, words);
    });
}

interface Applied {
  changes: Change[];
  keys: KeyDifference[];
  /** With the secrets of new keys. */
  files: string[];
}

/** The whole difference is known before anything of it is made. */
async function applied(
  manage: Management,
  wanted: readonly WantedOrganization[],
  { isDry, secrets, now_ms }: { isDry: boolean; secrets: string | null; now_ms: number },
): Promise<Applied> {
  const organizations = await allOf((page) => manage.pageOrganizations(page));
  const existing = new Map<string, Organization>(organizations.map((one) => [one.slug, one]));
  const plans = (await manage.listPlans()).data.map(({ name }) => name);
  const changes = changesTo(wanted, existing, plans);
  const keys: KeyDifference[] = [];
  for (const { slug, keys: named = [] } of wanted) {
    if (named.length === 0) continue;
    const found = existing.has(slug) ? await allOf((page) => manage.pageKeys({ organization: slug, ...page })) : [];
    keys.push(...keyDifferences(slug, named, found, now_ms));
  }
  if (isDry) return { changes, keys, files: [] };
  const folder = keys.some(({ key }) => key === null) ? secretsFolder(secrets) : "";
  const plansWanted = new Map(wanted.map(({ slug, plan }) => [slug, plan]));
  for (const change of changes) {
    const { slug } = change;
    const known = existing.get(slug);
    existing.set(slug, await made(manage, change, known, plansWanted.get(slug) ?? null));
  }
  const files: string[] = [];
  for (const difference of keys) files.push(...(await makeKey(manage, difference, folder)));
  return { changes, keys, files };
}

/** Refused where somebody else changed the organization since it was looked at: the difference would be another one. */
function made(manage: Management, change: Change, known: Organization | undefined, plan: string | null) {
  const { slug: organization, field, to } = change;
  const input = { organization, version: known?.version };
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

function setStatus(manage: Management, input: { organization: string; version: number | undefined }, to: Change["to"]) {
  if (to === "closed") return manage.closeOrganization(input);
  return to === "suspended" ? manage.suspendOrganization(input) : manage.resumeOrganization(input);
}

function describe({ slug, field, from, to }: Change): string {
  if (field === "organization") return `+ ${slug}: created, with the name ${to}`;
  return `~ ${slug}: ${field} ${from ?? "none"} → ${to ?? "none"}`;
}

function describeKey({ slug, key, wanted: { name }, changed }: KeyDifference): string[] {
  if (key === null) return [`+ ${slug}: key '${name}' created`];
  const said = (value: unknown) =>
    value === null ? "none" : value instanceof Date ? value.toISOString() : JSON.stringify(value);
  return changed.map(({ field, from, to }) => `~ ${slug}: key '${name}' ${field} ${said(from)} → ${said(to)}`);
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
      keys:
        build server:                   # by its name; a new one needs --secrets
          owner: ann
          labels: { stage: production }
          allowed_addresses: [10.0.0.0/8]
          expires: 2030-01-31           # null: never

Examples:
  $ sluice apply -f organizations.yaml --dry-run
  $ sluice apply -f organizations.yaml --secrets /run/secrets/sluice`;
