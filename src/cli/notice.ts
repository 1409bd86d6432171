/** `sluice notice …`: webhooks of organizations. */
import { type Command, InvalidArgumentError } from "commander";
import { Notices, SetNotices } from "../management/notices.ts";
import { encode } from "../schema/codec.ts";
import { withManagement } from "./connect.ts";
import type { CommandContext } from "./context.ts";
import { type JsonFlag, jsonOption, printJson, wholeNumber } from "./option.ts";
import type { Services } from "./services.ts";
import { facts } from "./table.ts";

interface SetOptions extends JsonFlag {
  url?: string;
  shares?: number[];
  keyExpiryDays?: number;
  newSecret?: boolean;
}

const argument = ["<org>", "slug or ID of the organization"] as const;

export function addNoticeCommands(program: Command, { services }: CommandContext): void {
  const notice = program
    .command("notice")
    .description("tell organizations by webhook what they used, and which keys expire");
  notice
    .command("set")
    .description("set the webhook of an organization; what is left out stays")
    .argument(...argument)
    .option("--url <url>", "where to send notices; begins with https://")
    .option("--shares <list>", "percentages of a window at which to tell (default: 80,100)", shares)
    .option("--key-expiry-days <n>", "days before a key expires; 0: never (default: 14)", wholeNumber(0, 90))
    .option("--new-secret", "give it a new secret")
    .addOption(jsonOption())
    .action(async (organization: string, { json, ...options }: SetOptions) => {
      const set = await withManagement(services, (manage) => manage.setNotices({ organization, ...options }));
      if (json) return printJson(services.terminal, encode(SetNotices, set));
      const secret = set.secret && `\nThe secret that signs notices, shown this once:\n${set.secret}\n`;
      services.terminal.out(described(services, set) + (secret ?? ""));
    });
  notice
    .command("show")
    .description("show the webhook of an organization")
    .argument(...argument)
    .addOption(jsonOption())
    .action(async (organization: string, { json }: JsonFlag) => {
      const found = await withManagement(services, (manage) => manage.findNotices({ organization }));
      if (json) return printJson(services.terminal, encode(Notices, found));
      services.terminal.out(described(services, found));
    });
  notice
    .command("remove")
    .description("remove the webhook of an organization; what waits to be sent is dropped")
    .argument(...argument)
    .addOption(jsonOption())
    .action(async (organization: string, { json }: JsonFlag) => {
      const removed = await withManagement(services, (manage) => manage.removeNotices({ organization }));
      if (json) return printJson(services.terminal, encode(Notices, removed));
      services.terminal.out(`Removed the webhook of ${removed.organization}.\n`);
    });
}

function shares(value: string): number[] {
  const numbers = value.split(",").map((one) => (/^\d{1,3}$/.test(one.trim()) ? Number(one) : Number.NaN));
  if (numbers.every((share) => share >= 1 && share <= 100)) return numbers;
  throw new InvalidArgumentError("Specify percentages from 1 to 100, such as 80,100.");
}

function described({ terminal }: Services, hook: Notices): string {
  return facts(terminal, [
    ["organization", hook.organization],
    ["url", hook.url],
    ["shares", hook.shares.map((share) => `${share} %`).join(", ") || "none"],
    ["keys expire", hook.keyExpiryDays === 0 ? "not told" : `told ${hook.keyExpiryDays} days before`],
    ["waiting", String(hook.waiting)],
    ["problem", hook.problem ?? "none"],
  ]);
}
