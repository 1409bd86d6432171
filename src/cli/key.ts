/** `sluice key …` A secret is printed where it is made, once, and by nothing else. */
import type { Command } from "commander";
import type { OwnedKey } from "../auth/acting.ts";
import type { NewKey } from "../auth/key-verbs.ts";
import { Refusal } from "../auth/refusal.ts";
import { name as checkName } from "../auth/wish.ts";
import type { Secret } from "../store/directory.ts";
import type { Building } from "./building.ts";
import { jsonOption, missing, names, printJson } from "./option.ts";
import { refusalOf } from "./question.ts";
import { reached } from "./reach.ts";
import type { Services } from "./services.ts";
import { keyJson, newKeyJson } from "./shown.ts";
import { type Column, facts, instant, table } from "./table.ts";
import { painted } from "./terminal.ts";

interface Format {
  json?: boolean;
}

export function addKeyCommands(program: Command, { services }: Building): void {
  const key = program.command("key").description("API keys: create, rotate, revoke");
  addCreate(key, services);
  addList(key, services);
  addShow(key, services);
  addRotate(key, services);
  addRevoke(key, services);
}

interface CreateOptions extends Format {
  org?: string;
  name?: string;
  scopes?: string[];
  models?: string[];
  expires?: string;
}

function addCreate(key: Command, services: Services): void {
  key
    .command("create")
    .description("create a key and print it, once")
    .option("--org <org>", "the organization's slug or id")
    .option("--name <name>", "what the key is for")
    .option("--scopes <list>", "of models:read, inference:create, usage:read (default: all three)", names)
    .option("--models <list>", "ids of the models it may use (default: every model)", names)
    .option("--expires <instant>", "when it ends: ISO 8601 with a zone, or a date (default: never)")
    .addOption(jsonOption())
    .addHelpText("after", createExamples)
    .action(async (options: CreateOptions, command: Command) => {
      const { org, name } = await completed(services, options, command);
      const { scopes, models, expires } = options;
      const made = await reached(services, (manage) =>
        manage.createKey({ organization: org, name, scopes, models, expires }),
      );
      if (options.json) return printJson(services.terminal, newKeyJson(made));
      printSecret(services, made, `Created the key '${made.key.name}' of ${made.organization.slug} (${made.key.id}).`);
    });
}

function addList(key: Command, services: Services): void {
  key
    .command("list")
    .description("list the keys of an organization, or all")
    .option("--org <org>", "the organization's slug or id")
    .addOption(jsonOption())
    .action(async (options: Format & { org?: string }) => {
      const keys = await reached(services, (manage) => manage.listKeys({ organization: options.org }));
      if (options.json) return printJson(services.terminal, keys.map(keyJson));
      services.terminal.out(keys.length === 0 ? none : table(services.terminal, columns(services.nowMs()), keys));
    });
}

function addShow(key: Command, services: Services): void {
  key
    .command("show")
    .description("show a key, never its secret")
    .argument("<id>", "the key's id")
    .addOption(jsonOption())
    .action(async (id: string, options: Format) => {
      const found = await reached(services, (manage) => manage.findKey({ id }));
      if (options.json) return printJson(services.terminal, keyJson(found));
      services.terminal.out(shownKey(services, found));
    });
}

function addRotate(key: Command, services: Services): void {
  key
    .command("rotate")
    .description("give a key a new secret and print it, once; its id stays")
    .argument("<id>", "the key's id")
    .option("--grace <time>", "how long the old secret still works: 30m, 1h, 7d, 0s (default: until it is revoked)")
    .addOption(jsonOption())
    .addHelpText("after", rotateExamples)
    .action(async (id: string, options: Format & { grace?: string }) => {
      const made = await reached(services, (manage) => manage.rotateKey({ id, grace: options.grace }));
      if (options.json) return printJson(services.terminal, newKeyJson(made));
      printSecret(services, made, `Rotated the key '${made.key.name}' of ${made.organization.slug}.`);
      services.terminal.out(oldSecretsLine(made, services.nowMs()));
    });
}

function addRevoke(key: Command, services: Services): void {
  key
    .command("revoke")
    .description("refuse a key from now on, on every node within a second")
    .argument("<id>", "the key's id")
    .option("--old", "only the secrets that a rotation replaced")
    .option("-y, --yes", "do not ask")
    .addOption(jsonOption())
    .action(async (id: string, options: Format & { old?: boolean; yes?: boolean }) => {
      const old = options.old === true;
      if (services.terminal.interactive && !options.json && !options.yes) {
        // Asked before the data are reached again: nobody else has to wait for the answer.
        await confirmed(services, await reached(services, (manage) => manage.findKey({ id })), old);
      }
      const revoked = await reached(services, (manage) => manage.revokeKey({ id, old }));
      if (options.json) return printJson(services.terminal, keyJson(revoked));
      const what = old ? "The old secrets of the key" : "The key";
      const { key, organization } = revoked;
      services.terminal.out(`${what} '${key.name}' of ${organization.slug} ${old ? "are" : "is"} revoked.\n`);
    });
}

/** Organization and name, asked for where they are missing and somebody is there to ask. */
async function completed(
  services: Services,
  { org, name, json }: CreateOptions,
  command: Command,
): Promise<{ org: string; name: string }> {
  const ask = services.terminal.interactive && !json;
  if (org === undefined && !ask) missing(command, "--org");
  if (name === undefined && !ask) missing(command, "--name");
  return {
    org: org ?? (await askOrganization(services)),
    name:
      name ??
      (await (
        await services.prompts()
      ).text({
        message: "What is the key for? Its name",
        check: refusalOf((answer) => checkName(answer, "The key's name")),
      })),
  };
}

async function askOrganization(services: Services): Promise<string> {
  const organizations = await reached(services, (manage) => manage.listOrganizations());
  if (organizations.length === 0)
    throw new Refusal("There are no organizations yet; create one: sluice org create SLUG");
  return (await services.prompts()).choice({
    message: "For which organization?",
    options: organizations.map(({ slug, name }) => ({
      value: slug,
      label: name === slug ? slug : `${slug} (${name})`,
    })),
  });
}

async function confirmed(services: Services, { key, organization }: OwnedKey, old: boolean): Promise<void> {
  const what = old ? "the old secrets of the key" : "the key";
  const question = `Revoke ${what} '${key.name}' of ${organization.slug}? Whoever uses it is refused within a second.`;
  if (!(await (await services.prompts()).sure(question))) throw new Refusal("Nothing was revoked.");
}

function printSecret({ terminal }: Services, made: NewKey, first: string): void {
  terminal.out(
    `${first}\n\n  ${painted(terminal, "bold", made.secret)}\n\n` +
      "Store it now: it cannot be shown again. If it is lost or seen by others, " +
      `rotate it: sluice key rotate ${made.key.id}\n`,
  );
}

function oldSecretsLine({ key }: NewKey, now_ms: number): string {
  const old = key.secrets.slice(1).filter((secret) => stateOf(secret, now_ms) === "active");
  if (old.length === 0) return "The old secret works no more.\n";
  if (old.every((secret) => secret.expiresAt)) {
    const last_ms = Math.max(...old.map((secret) => secret.expiresAt?.getTime() ?? 0));
    return `The old secret works until ${instant(new Date(last_ms))}.\n`;
  }
  return `The old secret works until you revoke it: sluice key revoke ${key.id} --old\n`;
}

/** By this machine's clock, for people; what a request meets is decided by the store's. */
function stateOf({ revokedAt, expiresAt }: Pick<Secret, "revokedAt" | "expiresAt">, now_ms: number): string {
  if (revokedAt) return "revoked";
  return expiresAt && expiresAt.getTime() <= now_ms ? "expired" : "active";
}

function shownKey({ terminal, nowMs }: Services, { key, organization }: OwnedKey): string {
  const head = facts(terminal, [
    ["id", key.id],
    ["organization", organization.slug],
    ["name", key.name],
    ["state", stateOf(key, nowMs())],
    ["scopes", key.scopes.join(", ")],
    ["models", key.allowedModels?.join(", ") ?? "every model"],
    ["created", instant(key.createdAt)],
    ["expires", instant(key.expiresAt) ?? "never"],
    ["revoked", instant(key.revokedAt)],
    ["last used", instant(key.lastUsedAt) ?? "never"],
  ]);
  const secrets: Column<Secret>[] = [
    { head: "SECRET", cell: (secret) => `${secret.prefix}…${secret.suffix}` },
    { head: "STATE", cell: (secret) => stateOf(key.revokedAt ? key : secret, nowMs()) },
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

const none = "There are no keys yet. Create one: sluice key create --org ORG --name NAME\n";

const createExamples = `
Examples:
  $ sluice key create --org acme --name "build server"
  $ sluice key create --org acme --name reports --scopes usage:read --expires 2030-01-31T12:00:00Z --json
  $ sluice key create --org acme --name editor --models acme/writer-1,acme/writer-2`;

const rotateExamples = `
Examples:
  $ sluice key rotate key_0192f0c1d2e37a4b8c9d0e1f2a3b4c5d --grace 1h
  $ sluice key rotate key_0192f0c1d2e37a4b8c9d0e1f2a3b4c5d --grace 0s   # it was seen by others

In order: rotate, give the new secret to whoever uses the key, see that it
works, then: sluice key revoke ID --old`;
