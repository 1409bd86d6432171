/** `sluice console`: a link that opens the console of the server on this machine. */
import type { Command } from "commander";
import { minute } from "../../core/time/written.ts";
import { withManagement } from "./connect.ts";
import type { CommandContext } from "./context.ts";
import { type JsonFlag, jsonOption, printJson } from "./option.ts";

export function addConsoleCommand(program: Command, { services }: CommandContext): void {
  program
    .command("console")
    .description("print a link that opens the console once, signed in; for a server on this machine")
    .addOption(jsonOption())
    .action(async (options: JsonFlag) => {
      const { url, expiresAt } = await withManagement(services, (manage) => manage.createConsoleLink());
      if (options.json) return printJson(services.terminal, { url, expires_at: expiresAt });
      services.terminal.out(`${url}\n`);
      services.terminal.err(`It opens the console once, until ${minute(expiresAt)} UTC.\n`);
    });
}
