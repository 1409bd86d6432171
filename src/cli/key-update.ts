/** `sluice key update` and `sluice org key-limits`: the team and the limits of keys. */
import type { Command } from "commander";
import { budgetedKeyJson, keyDefaultJson } from "../http/management/budget-records.ts";
import { compact } from "../inference/compact.ts";
import type { LimitChanges } from "../management/budget-limits.ts";
import type { BudgetedKey } from "../management/budgets.ts";
import { withManagement } from "./connect.ts";
import { limitOption, limitsInWords } from "./limits.ts";
import { type JsonFlag, jsonOption, missing, printJson } from "./option.ts";
import type { Services } from "./services.ts";
import { facts } from "./table.ts";

interface UpdateOptions extends JsonFlag {
  team?: string | false;
  limit?: LimitChanges;
}

export function addKeyUpdate(key: Command, services: Services): void {
  key
    .command("update")
    .description("change a key's team or limits; they count at once, for running requests too")
    .argument("<id>", "ID of the key")
    .option("--team <team>", "ID or name of a team of its organization")
    .option("--no-team", "take the key out of its team")
    .addOption(limitOption("--limit", "what the key can use"))
    .addOption(jsonOption())
    .addHelpText("after", updateExamples)
    .action(async (id: string, { team, limit, json }: UpdateOptions, command: Command) => {
      if (team === undefined && !limit) missing(command, "--team, --no-team or --limit");
      const change = { ...(team === undefined ? {} : { team: team || null }), ...compact({ limits: limit }) };
      const updated = await withManagement(services, (manage) => manage.updateKeyBudget({ id, ...change }));
      if (json) return printJson(services.terminal, budgetedKeyJson(updated));
      services.terminal.out(facts(services.terminal, [["key", updated.key.id], ...budgetFacts(updated)]));
    });
}

export function addKeyLimits(org: Command, services: Services): void {
  org
    .command("key-limits")
    .description("show or set the limits that each new key of an organization gets; keys that exist keep theirs")
    .argument("<org>", "slug or ID of the organization")
    .addOption(limitOption("--limit", "what a new key can use, unless its team says otherwise"))
    .addOption(jsonOption())
    .action(async (organization: string, { limit, json }: UpdateOptions) => {
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
  $ sluice key update key_0192f0c1d2e37a4b8c9d0e1f2a3b4c5d --team research --limit week=none`;
