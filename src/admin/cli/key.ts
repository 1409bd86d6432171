/** `sluice key …` Only create and rotate print a secret, once. */
import type { Command } from "commander";
import type { Key } from "../management/key.ts";
import { withManagement } from "./connect.ts";
import type { CommandContext } from "./context.ts";
import { addKeyCreate } from "./key-create.ts";
import { describeKey, describeOldSecrets, secretWords } from "./key-facts.ts";
import { addKeyUpdate } from "./key-update.ts";
import { type JsonFlag, jsonOption } from "./option.ts";
import { runVerb } from "./run-verb.ts";
import type { Services } from "./services.ts";
import { addVerbCommands } from "./verb-command.ts";

export function addKeyCommands(program: Command, context: CommandContext): void {
  const key = program.command("key").description("manage API keys");
  addVerbCommands(key, context, [addKeyCreate, "list", addShow, addKeyUpdate, addRotate, addRevoke]);
}

function addShow(key: Command, { services }: CommandContext): void {
  key
    .command("show")
    .description("show a key without its secret")
    .argument("<id>", "ID of the key")
    .addOption(jsonOption())
    .action(async (id: string, options: JsonFlag) => {
      await runVerb(services, options, "findKeyBudget", { id }, (found) => describeKey(services, found));
    });
}

function addRotate(key: Command, { services }: CommandContext): void {
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
      await runVerb(services, options, "rotateKey", { id, grace: options.grace }, (made) => {
        const first = `Rotated key '${made.name}' of ${made.organization}.`;
        return secretWords(services, made, first) + describeOldSecrets(made, services.now_ms());
      });
    });
}

function addRevoke(key: Command, { services }: CommandContext): void {
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
        // The prompt appears while no connection is open, so that nobody else has to wait for the answer.
        await confirmRevocation(services, await withManagement(services, (manage) => manage.findKey({ id })), old);
      }
      await runVerb(
        services,
        options,
        "revokeKey",
        { id, old },
        ({ name, organization }) => `Revoked ${old ? "the old secrets of " : ""}key '${name}' of ${organization}.\n`,
      );
    });
}

async function confirmRevocation(services: Services, { name, organization }: Key, old: boolean): Promise<void> {
  const what = `${old ? "the old secrets of " : ""}key '${name}' of ${organization}`;
  const question = `Revoke ${what}? Within a second, requests that use ${old ? "them" : "it"} are refused.`;
  if (!(await (await services.prompts()).confirm(question))) throw new Error("Nothing was revoked.");
}

const rotateExamples = `
Examples:
  $ sluice key rotate key_0192f0c1d2e37a4b8c9d0e1f2a3b4c5d --grace 1h
  $ sluice key rotate key_0192f0c1d2e37a4b8c9d0e1f2a3b4c5d --grace 0s   # the secret leaked

To rotate without downtime: rotate the key, give its clients the new secret,
check that it works, and run: sluice key revoke ID --old`;
