/** `sluice key update`; and `sluice org key-limits` and `member-limits`, the limits of new keys and of people. */
import type { Command } from "commander";
import { encode } from "../../core/schema/codec.ts";
import type { Scope } from "../../core/store/directory.ts";
import { BudgetedKey } from "../management/budgets.ts";
import { type LimitChanges, limitsInWords } from "../management/limits.ts";
import type { Answer } from "../management/verbs.ts";
import { withManagement } from "./connect.ts";
import type { CommandContext } from "./context.ts";
import { budgetFacts, keyFacts } from "./key-facts.ts";
import { allowFromOption, type KeyOptions, labelOption, ownerOption } from "./key-options.ts";
import { limitOption } from "./limits.ts";
import { type JsonFlag, jsonOption, missing, names, printAnswer, type VersionFlag, versionOption } from "./option.ts";
import { runVerb } from "./run-verb.ts";
import { facts } from "./table.ts";

interface UpdateOptions extends JsonFlag, VersionFlag {
  team?: string | false;
  limit?: LimitChanges;
  name?: string;
  scopes?: Scope[];
  models?: string[];
  expires?: string;
  owner?: string | false;
  label?: KeyOptions["label"];
  allowFrom?: string[];
}

export function addKeyUpdate(key: Command, { services }: CommandContext): void {
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
    .addOption(ownerOption())
    .option("--no-owner", "nobody owns the key")
    .addOption(labelOption("set a label; without a text, take it away"))
    .addOption(allowFromOption("addresses and networks that can use the key, or all"))
    .addOption(versionOption("key"))
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
      const version = options.ifVersion;
      const updated = await withManagement(services, async (manage) => {
        if (isBudget) return manage.updateKeyBudget({ id, version, ...budget });
        await manage.updateKey({ id, version, ...changes });
        return manage.findKeyBudget({ id });
      });
      const rows = [["key", updated.id], ...keyFacts(updated), ...budgetFacts(updated)] as const;
      printAnswer(services.terminal, options, encode(BudgetedKey, updated), facts(services.terminal, rows));
    });
}

function budgetOf({ team, limit }: UpdateOptions) {
  return { ...(team === undefined ? {} : { team: team || null }), ...(limit && { limits: limit }) };
}

function changesOf({ name, scopes, models, expires, owner, label, allowFrom }: UpdateOptions) {
  const orAll = (list: string[]) => (list.length === 1 && list[0] === "all" ? null : list);
  return {
    ...(name === undefined ? {} : { name }),
    ...(scopes && { scopes }),
    ...(label && { labels: label }),
    ...(models && { models: orAll(models) }),
    ...(allowFrom && { addresses: orAll(allowFrom) }),
    ...(expires === undefined ? {} : { expires: expires === "never" ? null : expires }),
    ...(owner === undefined ? {} : { owner: owner || null }),
  };
}

type LimitsOptions = JsonFlag & VersionFlag & Pick<UpdateOptions, "limit">;

export function addKeyLimits(org: Command, context: CommandContext): void {
  addDefaults(org, context, "KeyDefault", {
    command: "key-limits",
    description: "show or set the limits that each new key of an organization gets; keys that exist keep theirs",
    limit: "what a new key can use, unless its team says otherwise",
    whose: "New keys",
  });
}

export function addMemberLimits(org: Command, context: CommandContext): void {
  addDefaults(org, context, "MemberDefault", {
    command: "member-limits",
    description: "show or set what each person of an organization can use who has no limits of their own",
    limit: "what a person can use, unless the person's team says otherwise",
    whose: "People",
  });
}

function addDefaults(
  org: Command,
  { services }: CommandContext,
  kind: "KeyDefault" | "MemberDefault",
  words: { command: string; description: string; limit: string; whose: string },
): void {
  const inWords = ({ organization, limits }: Answer<`find${typeof kind}`>) =>
    `${words.whose} of ${organization} get: ${limitsInWords(limits) ?? "no limits of their own"}.\n`;
  org
    .command(words.command)
    .description(words.description)
    .argument("<org>", "slug or ID of the organization")
    .addOption(limitOption("--limit", words.limit))
    .addOption(versionOption("organization"))
    .addOption(jsonOption())
    .action(async (organization: string, { limit, ifVersion: version, ...flags }: LimitsOptions) =>
      limit
        ? runVerb(services, flags, `update${kind}`, { organization, limits: limit, version }, inWords)
        : runVerb(services, flags, `find${kind}`, { organization }, inWords),
    );
}

const updateExamples = `
Examples:
  $ sluice key update key_0192f0c1d2e37a4b8c9d0e1f2a3b4c5d --limit session=20000000,week=60000000
  $ sluice key update key_0192f0c1d2e37a4b8c9d0e1f2a3b4c5d --team research --limit week=none
  $ sluice key update key_0192f0c1d2e37a4b8c9d0e1f2a3b4c5d --owner ann --label stage=production
  $ sluice key update key_0192f0c1d2e37a4b8c9d0e1f2a3b4c5d --allow-from 10.0.0.0/8,2001:db8::/64`;
