/** `sluice operator …`: who may administer over HTTP. Only create and rotate print a token, once. */
import { type Command, Option } from "commander";
import { NewOperator, Operator } from "../management/operators.ts";
import { allOf } from "../management/page.ts";
import { encode } from "../schema/codec.ts";
import { type Role, roles } from "../store/operators.ts";
import { withManagement } from "./connect.ts";
import type { CommandContext } from "./context.ts";
import { type JsonFlag, jsonOption, printJson } from "./option.ts";
import type { Services } from "./services.ts";
import { type Column, minute, table } from "./table.ts";

export function addOperatorCommands(program: Command, { services }: CommandContext): void {
  const operator = program.command("operator").description("manage operators, who may administer over HTTP");
  addCreate(operator, services);
  addList(operator, services);
  addRotate(operator, services);
  addRevoke(operator, services);
}

interface CreateOptions extends JsonFlag {
  role: Role;
  org?: string;
  expires?: string;
}

function addCreate(operator: Command, services: Services): void {
  operator
    .command("create")
    .description("create an operator and print the token once")
    .argument("<name>", "who it is, for the audit log: letters, digits, and . _ @ + -")
    .addOption(new Option("--role <role>", "what the operator may do").choices(roles).makeOptionMandatory())
    .option("--org <org>", "slug or ID of the organization of an organization-admin")
    .option("--expires <instant>", "when it expires: ISO 8601 with a time zone, or a date in UTC (default: never)")
    .addOption(jsonOption())
    .addHelpText("after", createExamples)
    .action(async (name: string, options: CreateOptions) => {
      const { role, org: organization, expires } = options;
      const made = await withManagement(services, (manage) =>
        manage.createOperator({ name, role, organization, expires }),
      );
      if (options.json) return printJson(services.terminal, encode(NewOperator, made));
      printToken(services, made, `Created operator ${made.name} (${made.id}).`);
    });
}

function addList(operator: Command, services: Services): void {
  operator
    .command("list")
    .description("list all operators")
    .addOption(jsonOption())
    .action(async (options: JsonFlag) => {
      const all = await withManagement(services, (manage) => allOf((page) => manage.pageOperators(page)));
      if (options.json)
        return printJson(
          services.terminal,
          all.map((one) => encode(Operator, one)),
        );
      services.terminal.out(all.length === 0 ? none : table(services.terminal, columns(services.now_ms()), all));
    });
}

function addRotate(operator: Command, services: Services): void {
  operator
    .command("rotate")
    .description("give an operator a new token and print it once; the ID stays the same")
    .argument("<operator>", "name or ID of the operator")
    .option(
      "--grace <time>",
      "how long the old token keeps working, such as 30m, 1h, 7d, or 0s (default: until you revoke it)",
    )
    .addOption(jsonOption())
    .action(async (id: string, options: JsonFlag & { grace?: string }) => {
      const { grace } = options;
      const made = await withManagement(services, (manage) => manage.rotateOperator({ id, grace }));
      if (options.json) return printJson(services.terminal, encode(NewOperator, made));
      printToken(services, made, `Rotated the token of operator ${made.name}.`);
    });
}

function addRevoke(operator: Command, services: Services): void {
  operator
    .command("revoke")
    .description("revoke an operator; the next request is refused")
    .argument("<operator>", "name or ID of the operator")
    .option("--old", "revoke only the old tokens that rotations replaced")
    .addOption(jsonOption())
    .action(async (id: string, options: JsonFlag & { old?: boolean }) => {
      const old = options.old === true;
      const revoked = await withManagement(services, (manage) => manage.revokeOperator({ id, old }));
      if (options.json) return printJson(services.terminal, encode(Operator, revoked));
      services.terminal.out(`Revoked ${old ? "the old tokens of " : ""}operator ${revoked.name}.\n`);
    });
}

function printToken({ terminal }: Services, { token }: NewOperator, what: string): void {
  terminal.out(`${what}\n\n  ${token}\n\nStore the token now; it is not shown again.\n`);
}

function stateOf({ revokedAt, expiresAt }: Operator, now_ms: number): string {
  if (revokedAt) return "revoked";
  return expiresAt && expiresAt.getTime() <= now_ms ? "expired" : "active";
}

const columns = (now_ms: number): Column<Operator>[] => [
  { head: "NAME", cell: ({ name }) => name },
  { head: "ROLE", cell: ({ role }) => role },
  { head: "STATE", cell: (one) => stateOf(one, now_ms) },
  { head: "ID", cell: ({ id }) => id },
  { head: "LAST USED (UTC)", cell: ({ lastUsedAt }) => minute(lastUsedAt) ?? "never", optional: true },
  { head: "FROM", cell: ({ lastUsedFrom }) => lastUsedFrom ?? "", optional: true },
  { head: "ORGANIZATION", cell: ({ organizationId }) => organizationId ?? "all", optional: true },
];

const none = "There are no operators yet. To create one, run: sluice operator create NAME --role admin\n";

const createExamples = `
Roles: admin may do everything, viewer may read everything, and
organization-admin reads and manages the keys of one organization.

Examples:
  $ sluice operator create ann --role admin
  $ sluice operator create acme-ci --role organization-admin --org acme --expires 2027-01-31`;
