/** `sluice key …` Only create and rotate print a secret, once. */
import type { Command } from "commander";
import { budgetedKeyJson } from "../http/management/budget-records.ts";
import { keyJson, newKeyJson } from "../http/management/records.ts";
import { compact } from "../inference/compact.ts";
import type { LimitChanges } from "../management/budget-limits.ts";
import type { BudgetedKey } from "../management/budgets.ts";
import type { OwnedKey } from "../management/context.ts";
import type { NewKey } from "../management/keys.ts";
import { name as parseName } from "../management/parse.ts";
import { keyStates, type Secret } from "../store/directory.ts";
import { withManagement } from "./connect.ts";
import type { CommandContext } from "./context.ts";
import { addKeyUpdate, budgetFacts, keyFacts } from "./key-update.ts";
import { limitOption } from "./limits.ts";
import { type JsonFlag, jsonOption, missing, names, printJson } from "./option.ts";
import type { Services } from "./services.ts";
import { type Column, facts, instant, table } from "./table.ts";
import { painted } from "./terminal.ts";
import { validator } from "./validator.ts";

export function addKeyCommands(program: Command, { services }: CommandContext): void {
  const key = program.command("key").description("manage API keys");
  addCreate(key, services);
  addList(key, services);
  addShow(key, services);
  addKeyUpdate(key, services);
  addRotate(key, services);
  addRevoke(key, services);
}

interface CreateOptions extends JsonFlag {
  org?: string;
  name?: string;
  scopes?: string[];
  models?: string[];
  expires?: string;
  team?: string;
  limit?: LimitChanges;
}

function addCreate(key: Command, services: Services): void {
  key
    .command("create")
    .description("create a key and print it once")
    .option("--org <org>", "slug or ID of the organization")
    .option("--name <name>", "name of the key, such as what it is for")
    .option("--scopes <list>", "any of models:read, inference:create, usage:read (default: all three)", names)
    .option("--models <list>", "IDs of the models that the key can use (default: every model)", names)
    .option("--expires <instant>", "when the key expires: ISO 8601 with a time zone, or a date in UTC (default: never)")
    .option("--team <team>", "ID or name of a team of the organization")
    .addOption(limitOption("--limit", "what the key can use (default: what its team or its organization gives)"))
    .addOption(jsonOption())
    .addHelpText("after", createExamples)
    .action(async (options: CreateOptions, command: Command) => {
      const { org, name } = await promptForMissing(services, options, command);
      const { scopes, models, expires, team, limit } = options;
      const made = await withManagement(services, (manage) =>
        manage.createKey({ organization: org, name, ...compact({ scopes, models, expires, team, limits: limit }) }),
      );
      if (options.json) return printJson(services.terminal, newKeyJson(made));
      printSecret(services, made, `Created key '${made.key.name}' of ${made.organization.slug} (${made.key.id}).`);
    });
}

interface ListOptions extends JsonFlag {
  org?: string;
  state?: string;
  unusedFor?: string;
}

function addList(key: Command, services: Services): void {
  key
    .command("list")
    .description("list all keys, or the keys of one organization")
    .option("--org <org>", "slug or ID of the organization")
    .option("--state <state>", `only keys in this state: ${keyStates.join(", ")}`)
    .option("--unused-for <time>", "only keys not used for so long, such as 30d; or never, and made so long ago")
    .addOption(jsonOption())
    .action(async (options: ListOptions) => {
      const { org: organization, state, unusedFor } = options;
      const asked = compact({ organization, state, unusedFor });
      const keys = await withManagement(services, (manage) => manage.listKeys(asked));
      if (keys.length === 0 && (state ?? unusedFor) !== undefined && !options.json)
        return services.terminal.out("There are no such keys.\n");
      if (options.json) return printJson(services.terminal, keys.map(keyJson));
      services.terminal.out(keys.length === 0 ? none : table(services.terminal, columns(services.now_ms()), keys));
    });
}

function addShow(key: Command, services: Services): void {
  key
    .command("show")
    .description("show a key without its secret")
    .argument("<id>", "ID of the key")
    .addOption(jsonOption())
    .action(async (id: string, options: JsonFlag) => {
      const found = await withManagement(services, (manage) => manage.findKeyBudget({ id }));
      if (options.json) return printJson(services.terminal, budgetedKeyJson(found));
      services.terminal.out(describeKey(services, found));
    });
}

function addRotate(key: Command, services: Services): void {
  key
    .command("rotate")
    .description("give a key a new secret and print it once; the ID stays the same")
    .argument("<id>", "ID of the key")
    .option(
      "--grace <time>",
      "how long the old secret keeps working, such as 30m, 1h, 7d, or 0s (default: until you revoke it)",
    )
    .addOption(jsonOption())
    .addHelpText("after", rotateExamples)
    .action(async (id: string, options: JsonFlag & { grace?: string }) => {
      const grace = compact({ grace: options.grace });
      const made = await withManagement(services, (manage) => manage.rotateKey({ id, ...grace }));
      if (options.json) return printJson(services.terminal, newKeyJson(made));
      printSecret(services, made, `Rotated key '${made.key.name}' of ${made.organization.slug}.`);
      services.terminal.out(describeOldSecrets(made, services.now_ms()));
    });
}

function addRevoke(key: Command, services: Services): void {
  key
    .command("revoke")
    .description("revoke a key; within a second, every node refuses it")
    .argument("<id>", "ID of the key")
    .option("--old", "revoke only the old secrets that rotations replaced")
    .option("-y, --yes", "skip the confirmation prompt")
    .addOption(jsonOption())
    .action(async (id: string, options: JsonFlag & { old?: boolean; yes?: boolean }) => {
      const old = options.old === true;
      if (services.terminal.interactive && !options.json && !options.yes) {
        // Ask while no connection is open, so that nobody else has to wait for the answer.
        await confirmRevocation(services, await withManagement(services, (manage) => manage.findKey({ id })), old);
      }
      const revoked = await withManagement(services, (manage) => manage.revokeKey({ id, old }));
      if (options.json) return printJson(services.terminal, keyJson(revoked));
      const { key, organization } = revoked;
      services.terminal.out(`Revoked ${old ? "the old secrets of " : ""}key '${key.name}' of ${organization.slug}.\n`);
    });
}

/** The organization and name, asked for if they are missing and the terminal is interactive. */
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
    check: validator((answer) => parseName(answer, "The key's name")),
  });
}

async function askOrganization(services: Services): Promise<string> {
  const organizations = await withManagement(services, (manage) => manage.listOrganizations());
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

async function confirmRevocation(services: Services, { key, organization }: OwnedKey, old: boolean): Promise<void> {
  const what = `${old ? "the old secrets of " : ""}key '${key.name}' of ${organization.slug}`;
  const question = `Revoke ${what}? Within a second, requests that use ${old ? "them" : "it"} are refused.`;
  if (!(await (await services.prompts()).confirm(question))) throw new Error("Nothing was revoked.");
}

function printSecret({ terminal }: Services, made: NewKey, first: string): void {
  terminal.out(
    `${first}\n\n  ${painted(terminal, "bold", made.secret)}\n\n` +
      `Store it now: it cannot be shown again. If you lose it or it leaks, run: sluice key rotate ${made.key.id}\n`,
  );
}

function describeOldSecrets({ key }: NewKey, now_ms: number): string {
  const old = key.secrets.slice(1).filter((secret) => stateOf(secret, now_ms) === "active");
  if (old.length === 0) return "The old secret no longer works.\n";
  if (old.every((secret) => secret.expiresAt)) {
    const last_ms = Math.max(...old.map((secret) => secret.expiresAt?.getTime() ?? 0));
    return `The old secret works until ${instant(new Date(last_ms))}.\n`;
  }
  return `The old secret works until you revoke it. To revoke it, run: sluice key revoke ${key.id} --old\n`;
}

/** By this machine's clock, for display; requests are judged by the store's clock. */
function stateOf({ revokedAt, expiresAt }: Pick<Secret, "revokedAt" | "expiresAt">, now_ms: number): string {
  if (revokedAt) return "revoked";
  return expiresAt && expiresAt.getTime() <= now_ms ? "expired" : "active";
}

function describeKey({ terminal, now_ms }: Services, budgeted: BudgetedKey): string {
  const { key, organization } = budgeted;
  const head = facts(terminal, [
    ["id", key.id],
    ["organization", organization.slug],
    ["state", stateOf(key, now_ms())],
    ...keyFacts(key),
    ...budgetFacts(budgeted),
    ["created", [instant(key.createdAt), key.createdBy && `by ${key.createdBy}`].filter(Boolean).join(" ")],
    ["revoked", instant(key.revokedAt)],
    [
      "last used",
      [instant(key.lastUsedAt) ?? "never", key.lastUsedFrom && `from ${key.lastUsedFrom}`].filter(Boolean).join(" "),
    ],
  ]);
  const secrets: Column<Secret>[] = [
    { head: "SECRET", cell: (secret) => `${secret.prefix}…${secret.suffix}` },
    { head: "STATE", cell: (secret) => stateOf(key.revokedAt ? key : secret, now_ms()) },
    { head: "CREATED", cell: (secret) => instant(secret.createdAt) ?? "" },
    { head: "ENDS", cell: (secret) => instant(secret.revokedAt ?? key.revokedAt ?? secret.expiresAt) ?? "" },
  ];
  return `${head}\n${table(terminal, secrets, key.secrets)}`;
}

function columns(now_ms: number): Column<OwnedKey>[] {
  return [
    { head: "ID", cell: ({ key }) => key.id },
    { head: "ORG", cell: ({ organization }) => organization.slug },
    { head: "NAME", cell: ({ key }) => key.name, breaks: true },
    { head: "STATE", cell: ({ key }) => stateOf(key, now_ms) },
    {
      head: "KEY",
      optional: true,
      cell: ({ key }) =>
        key.secrets
          .slice(0, 1)
          .map((one) => `${one.prefix}…${one.suffix}`)
          .join(""),
    },
    { head: "SCOPES", cell: ({ key }) => key.scopes.join(" "), breaks: true, optional: true },
    { head: "LAST USED", optional: true, cell: ({ key }) => key.lastUsedAt?.toISOString().slice(0, 10) ?? "never" },
  ];
}

const none = "There are no keys yet. To create one, run: sluice key create --org ORG --name NAME\n";

const createExamples = `
Examples:
  $ sluice key create --org acme --name "build server"
  $ sluice key create --org acme --name reports --scopes usage:read --expires 2030-01-31T12:00:00Z --json
  $ sluice key create --org acme --name editor --models acme/writer-1,acme/writer-2`;

const rotateExamples = `
Examples:
  $ sluice key rotate key_0192f0c1d2e37a4b8c9d0e1f2a3b4c5d --grace 1h
  $ sluice key rotate key_0192f0c1d2e37a4b8c9d0e1f2a3b4c5d --grace 0s   # the secret leaked

To rotate without downtime: rotate the key, give its clients the new secret,
check that it works, and run: sluice key revoke ID --old`;
