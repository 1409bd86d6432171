/** `sluice audit …`: who did what to organizations and keys. */
import type { Command } from "commander";
import { compact } from "../inference/compact.ts";
import { auditShown } from "../store/audit-chain.ts";
import type { AuditEntry } from "../store/directory.ts";
import { withManagement } from "./connect.ts";
import type { CommandContext } from "./context.ts";
import { type JsonFlag, jsonOption, printJson, wholeNumber } from "./option.ts";
import { type Column, minute, table } from "./table.ts";

export function addAuditCommands(program: Command, { services }: CommandContext): void {
  const audit = program.command("audit").description("read the audit log of administrative actions");
  audit
    .command("list")
    .description("list administrative actions, newest first")
    .option("--org <org>", "list only actions on this organization (slug or ID)")
    .option("--limit <n>", "number of entries, 1 to 1000 (default: 50)", wholeNumber(1, 1000))
    .addOption(jsonOption())
    .action(async (options: JsonFlag & { org?: string; limit?: number }) => {
      const { org: organization, limit } = options;
      const entries = await withManagement(services, (manage) => manage.listAudit(compact({ organization, limit })));
      if (options.json) return printJson(services.terminal, entries.map(auditShown));
      services.terminal.out(
        entries.length === 0 ? "The audit log is empty.\n" : table(services.terminal, columns, entries),
      );
    });
}

const columns: Column<AuditEntry>[] = [
  { head: "WHEN (UTC)", cell: (entry) => minute(entry.at) ?? "" },
  { head: "WHO", cell: (entry) => entry.actor },
  { head: "WHAT", cell: (entry) => entry.action, breaks: true },
  { head: "SUBJECT", cell: (entry) => entry.subject },
  { head: "DETAILS", cell: (entry) => detailsOf(entry), breaks: true, optional: true },
];

function detailsOf({ details }: AuditEntry): string {
  return Object.entries(details)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(" ");
}
