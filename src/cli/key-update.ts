/** `sluice key update`, and `sluice org key-limits`: what new keys get. */
import type { Command } from "commander";
import { budgetedKeyJson, keyDefaultJson } from "../http/management/budget-records.ts";
import { compact } from "../inference/compact.ts";
import type { LimitChanges } from "../management/budget-limits.ts";
import type { BudgetedKey } from "../management/budgets.ts";
import type { KeyChanges } from "../management/key-change.ts";
import type { Key } from "../store/directory.ts";
import { withManagement } from "./connect.ts";
import { limitOption, limitsInWords } from "./limits.ts";
import { type JsonFlag, jsonOption, missing, names, printJson } from "./option.ts";
import type { Services } from "./services.ts";
import { facts, instant } from "./table.ts";

interface UpdateOptions extends JsonFlag {
  team?: string | false;
  limit?: LimitChanges;
  name?: string;
  scopes?: string[];
  models?: string[];
  expires?: string;
  owner?: string | false;
  label?: Record<string, string | null>;
  allowFrom?: string[];
}

export function addKeyUpdate(key: Command, services: Services): void {
  key
    .command("update")
    .description("change a key; every node knows within a second")
    .argument("<id>", "ID of the key")
    .option("--team <team>", "ID or name of a team of its organization")
    .option("--no-team", "take the key out of its team")
    .addOption(limitOption("--limit", "what the key can use"))
    .option("--name <name>", "new name")
    .option("--scopes <list>", "any of models:read, inference:create, usage:read", names)
    .option("--models <list>", "IDs of the models that the key can use, or all", names)
    .option("--expires <instant>", "ISO 8601 with a time zone, a date in UTC, or never")
    .option("--owner <owner>", "a person or a team, in any words")
    .option("--no-owner", "nobody owns the key")
    .option("--label <name=text>", "set a label; without a text, take it away; can be repeated", labelChanges)
    .option("--allow-from <list>", "addresses and networks that can use the key, or all", names)
    .addOption(jsonOption())
    .addHelpText("after", updateExamples)
    .action(async (id: string, options: UpdateOptions, command: Command) => {
      const budget = budgetOf(options);
      const changes = changesOf(options);
      const isBudget = Object.keys(budget).length > 0;
      const isKey = Object.keys(changes).length > 0;
      if (!isBudget && !isKey) missing(command, "what to change, such as --name, --team or --limit");
      // They are two acts: done in one command, the first would stand if the second is refused.
      if (isBudget && isKey) command.error("error: change the team or the limits in a command of their own");
      const updated = await withManagement(services, async (manage) => {
        if (isBudget) return manage.updateKeyBudget({ id, ...budget });
        await manage.updateKey({ id, ...changes });
        return manage.findKeyBudget({ id });
      });
      if (options.json) return printJson(services.terminal, budgetedKeyJson(updated));
      services.terminal.out(
        facts(services.terminal, [["key", updated.key.id], ...keyFacts(updated.key), ...budgetFacts(updated)]),
      );
    });
}

function budgetOf({ team, limit }: UpdateOptions) {
  return { ...(team === undefined ? {} : { team: team || null }), ...compact({ limits: limit }) };
}

function changesOf({ name, scopes, models, expires, owner, label, allowFrom }: UpdateOptions): KeyChanges {
  const orAll = (list: string[]) => (list.length === 1 && list[0] === "all" ? null : list);
  return {
    ...compact({ name, scopes, labels: label }),
    ...(models && { models: orAll(models) }),
    ...(allowFrom && { addresses: orAll(allowFrom) }),
    ...(expires === undefined ? {} : { expires: expires === "never" ? null : expires }),
    ...(owner === undefined ? {} : { owner: owner || null }),
  };
}

function labelChanges(value: string, before: Record<string, string | null> | undefined) {
  const [label = "", ...text] = value.split("=");
  return { ...before, [label]: text.join("=") || null };
}

/** What `key update` changes, but for team and limits. */
export function keyFacts(key: Key): [string, string | null][] {
  const labels = Object.entries(key.labels).map(([label, text]) => `${label}=${text}`);
  return [
    ["name", key.name],
    ["owner", key.owner],
    ["labels", labels.join(", ") || null],
    ["scopes", key.scopes.join(", ")],
    ["models", key.allowedModels?.join(", ") ?? "every model"],
    ["allowed from", key.allowedAddresses?.join(", ") ?? "every address"],
    ["expires", instant(key.expiresAt) ?? "never"],
  ];
}

export function addKeyLimits(org: Command, services: Services): void {
  org
    .command("key-limits")
    .description("show or set the limits that each new key of an organization gets; keys that exist keep theirs")
    .argument("<org>", "slug or ID of the organization")
    .addOption(limitOption("--limit", "what a new key can use, unless its team says otherwise"))
    .addOption(jsonOption())
    .action(async (organization: string, { limit, json }: Pick<UpdateOptions, "limit" | "json">) => {
      const found = await withManagement(services, (manage) =>
        limit ? manage.updateKeyDefault({ organization, limits: limit }) : manage.findKeyDefault({ organization }),
      );
      if (json) return printJson(services.terminal, keyDefaultJson(found));
      const words = limitsInWords(found.limits) ?? "no limits of their own";
      services.terminal.out(`New keys of ${found.organization.slug} get: ${words}.\n`);
    });
}

export function budgetFacts({ budget: { team, budget } }: BudgetedKey): [string, string | null][] {
  return [
    ["team", team && `${team.name} (${team.id})`],
    ["limits", limitsInWords(budget) ?? "none of its own"],
  ];
}

const updateExamples = `
Examples:
  $ sluice key update key_0192f0c1d2e37a4b8c9d0e1f2a3b4c5d --limit session=20000000,week=60000000
  $ sluice key update key_0192f0c1d2e37a4b8c9d0e1f2a3b4c5d --team research --limit week=none
  $ sluice key update key_0192f0c1d2e37a4b8c9d0e1f2a3b4c5d --owner ann --label stage=production
  $ sluice key update key_0192f0c1d2e37a4b8c9d0e1f2a3b4c5d --allow-from 10.0.0.0/8,2001:db8::/64`;
