/** `sluice audit …`: shows, exports and verifies the log of administrative actions. */
import { readFileSync } from "node:fs";
import type { Command } from "commander";
import { grouped } from "../../core/inference/money.ts";
import type { Part } from "../management/page.ts";
import { page_max } from "../management/shapes.ts";
import type { Management } from "../management/verbs.ts";
import type { NamedEntry } from "../store/administration.ts";
import { type AuditLine, auditShown } from "../store/audit-chain.ts";
import { headOf, headText, linesIn, proofOf, type VerifyOptions } from "./audit-proof.ts";
import { withManagement } from "./connect.ts";
import { type JsonFlag, jsonOption, printJson, wholeNumber } from "./option.ts";
import type { CommandContext } from "./services.ts";

export function addAuditCommands(audit: Command, context: CommandContext): void {
  addExport(audit, context);
  addVerify(audit, context);
}

function addExport(audit: Command, { services }: CommandContext): void {
  audit
    .command("export")
    .description("print the log as JSON lines, oldest first")
    .option("--after <number>", "only entries after this one", wholeNumber(0, 999_999_999))
    .action(async (options: { after?: number }) => {
      await withManagement(services, (manage) =>
        eachPart(manage, options.after ?? 0, (lines) => {
          services.terminal.out(lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
        }),
      );
    });
}

function addVerify(audit: Command, { services }: CommandContext): void {
  audit
    .command("verify")
    .description("prove that no entry was changed, removed, or added")
    .option("--from <head>", "a head that was kept: entries from there on (default: from the first entry)", headOf)
    .option("--to <head>", "a later head that was kept: up to there (default: up to the last entry)", headOf)
    .option("--file <file>", "verify an exported file instead of the log")
    .addOption(jsonOption())
    .addHelpText("after", verifyHelp)
    .action(async (options: JsonFlag & VerifyOptions) => {
      const proof = proofOf(options);
      if (options.file === undefined) {
        await withManagement(services, (manage) => eachPart(manage, proof.first, proof.take));
      } else {
        proof.take(linesIn(readFileSync(options.file, "utf8")));
      }
      const verified = proof.end();
      if (options.json) return printJson(services.terminal, verified);
      const { entries, head } = verified;
      services.terminal.out(
        `${grouped(entries)} entries are as they were written. The chain stands at:\n${headText(head)}\n`,
      );
    });
}

/** Passes all entries of the audit log after the entry with this number to `take`, page by page. */
async function eachPart(manage: Management, after: number, take: (lines: AuditLine[]) => void): Promise<void> {
  let cursor: string | null = String(after);
  while (cursor !== null) {
    const page: Part<NamedEntry> = await manage.pageAudit({ order: "oldest", limit: page_max, cursor });
    take(page.data.map(auditShown));
    cursor = page.nextCursor;
  }
}

const verifyHelp = `
Each entry has the SHA-256 of itself and the entry before. This command computes
all hashes anew, from a head that you kept elsewhere (audit head, or the last
line of an export). Anyone who can write to the database can write a whole new
chain, so only a head that they could not change proves something.

Examples:
  $ sluice audit verify --from 120:9f2c… --to 480:77ab…
  $ sluice audit export >audit.jsonl && sluice audit verify --file audit.jsonl`;
