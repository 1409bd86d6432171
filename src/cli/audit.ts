/** `sluice audit …`: what was done to organizations and keys, and by whom. */
import type { Command } from "commander";
import type { AuditEntry } from "../store/directory.ts";
import type { Building } from "./building.ts";
import { jsonOption, printJson, wholeNumber } from "./option.ts";
import { reached } from "./reach.ts";
import { auditJson } from "./shown.ts";
import { type Column, minute, table } from "./table.ts";

export function addAuditCommands(program: Command, { services }: Building): void {
  const audit = program.command("audit").description("the audit log: who did what to organizations and keys");
  audit
    .command("list")
    .description("list administrative acts, newest first")
    .option("--org <org>", "only those that concern this organization: its slug or id")
    .option("--limit <n>", "how many, 1 to 1000 (default: 50)", wholeNumber(1, 1000))
    .addOption(jsonOption())
    .action(async (options: { org?: string; limit?: number; json?: boolean }) => {
      const { org: organization, limit } = options;
      const entries = await reached(services, (manage) => manage.listAudit({ organization, limit }));
      if (options.json) return printJson(services.terminal, entries.map(auditJson));
      services.terminal.out(
        entries.length === 0 ? "Nothing has been done yet.\n" : table(services.terminal, columns, entries),
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
