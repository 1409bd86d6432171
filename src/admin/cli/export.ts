/** `sluice export`: writes the file of `sluice apply` from the current state. */
import { writeFileSync } from "node:fs";
import type { Command } from "commander";
import { organizationsYaml, readOrganizationsFile } from "../../config/organizations-file.ts";
import { readState } from "../management/apply/state.ts";
import type { Problem } from "../management/apply/step.ts";
import { refusedElsewhere, type WrittenFile, written } from "../management/apply/written.ts";
import { noOrganization } from "../management/context.ts";
import type { Organization } from "../management/organizations.ts";
import type { Management } from "../management/verbs.ts";
import { withManagement } from "./connect.ts";
import { type JsonFlag, jsonOption, names, printJson } from "./option.ts";
import type { CommandContext } from "./services.ts";

interface ExportOptions extends JsonFlag {
  org?: string[];
  allFields?: true;
  output?: string;
}

export function addExportCommand(program: Command, { services }: CommandContext): void {
  program
    .command("export")
    .description("write the current state as a file for sluice apply")
    .option(
      "--org <list>",
      "slugs of organizations (default: all that are not closed, the plans made here, and people)",
      names,
    )
    .option("--all-fields", "write fields that are as in a new organization, team or key, too")
    .option("-o, --output <file>", "write a new file, instead of printing it")
    .addOption(jsonOption())
    .addHelpText("after", help)
    .action(async (options: ExportOptions) => {
      const { terminal } = services;
      const fields = { allFields: options.allFields === true, now_ms: services.now_ms() };
      const { file, ambiguous, addresses, refused } = await withManagement(services, (manage) =>
        exported(manage, options.org, fields),
      );
      for (const { organization, name, keys } of ambiguous) {
        terminal.err(
          `warning: ${organization} has ${keys} keys '${name}', which a file cannot tell apart: they are left out\n`,
        );
      }
      const text = organizationsYaml(file, comment, addresses);
      const name = options.output ?? "organizations.yaml";
      const lines = refused.length > 0 ? readOrganizationsFile(Buffer.from(text), name).linesOf(refused) : [];
      for (const line of lines) terminal.err(`warning: another store would refuse ${line}\n`);
      if (options.json) return printJson(terminal, file);
      if (options.output === undefined) return terminal.out(text);
      writeFileSync(options.output, text, { flag: "wx", mode: 0o600 });
      terminal.err(`Wrote ${options.output}\n`);
    });
}

const comment = ` The file of sluice apply. Secrets of keys cannot be exported: a key that is made from
 this file gets a new one (sluice apply --secrets FOLDER).`;

const everything = { limits: true, notices: true, teams: true, keys: true };

async function exported(
  manage: Management,
  slugs: string[] | undefined,
  fields: { allFields: boolean; now_ms: number },
): Promise<WrittenFile & { refused: Problem[] }> {
  const needsOf = ({ slug, status }: Organization) =>
    (slugs ? slugs.includes(slug) : status !== "closed") ? everything : null;
  const state = await readState(manage, needsOf, slugs ? "none" : "by hand");
  for (const slug of slugs ?? []) if (!state.organizations.has(slug)) noOrganization(slug);
  const file = written(slugs ? { ...state, plans: new Map() } : state, fields);
  return { ...file, refused: refusedElsewhere(file, state, fields.now_ms) };
}

const help = `
Applying the file to what it was written from changes nothing. Applied to
another store, it makes the same plans, organizations, teams and keys, with new
secrets; people get what they have by hand once they have come in there. Left
out are closed organizations, keys that are revoked or past their expiry, former
slugs, usage, operators, temporary increases of limits, people for whom nothing
was set by hand, and secrets of webhooks.

Examples:
  $ sluice export > organizations.yaml
  $ sluice export --org acme,globex --all-fields -o two.yaml
  $ sluice apply -f organizations.yaml --dry-run --exit-code`;
