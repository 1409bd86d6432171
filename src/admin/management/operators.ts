/**
 * Operators: identities with tokens that administer over HTTP. A new token is returned once. Only an admin sees
 * operators.
 */
import Type from "typebox";
import { secretOf } from "../../core/auth/credential.ts";
import { Secret } from "../../core/operations/fields.ts";
import { nullable, oneOf } from "../../core/protocol/shapes/contract.ts";
import type { Value } from "../../core/schema/codec.ts";
import { idOf } from "../../core/store/ids.ts";
import { instant, minute } from "../../core/time/written.ts";
import { Operator, type Role, roles } from "../../features/identity/store/operators.ts";
import type { Revocation } from "../store/credential.ts";
import { exampleOf } from "../store/example.ts";
import { type Column, type Facts, flag, required } from "./command.ts";
import { lastAdministrator, type ManagementContext, reusedKey } from "./context.ts";
import {
  grace,
  graceFlag,
  madeWords,
  newSecret,
  old,
  oldEndsInWords,
  oldFlag,
  once,
  rotated,
  secretSaid,
  secretState,
  usedWords,
} from "./credential.ts";
import { fail } from "./error.ts";
import { partFrom } from "./page.ts";
import * as parse from "./parse.ts";
import { admins, examples, formed, limitIn, moment, partOf, partOfIds, words } from "./shapes.ts";
import { verbsOf } from "./verb.ts";

const verb = verbsOf("Operators");

const { id: operatorId, ...rest } = Operator.properties;
const NewOperator = Type.Object(
  {
    id: operatorId,
    token: nullable(Type.String({ description: `The token. ${once}`, examples: [`slo_${"x".repeat(38)}`] })),
    ...rest,
  },
  { $id: "NewOperator" },
);
export type NewOperator = Value<typeof NewOperator>;

const secrets = [exampleOf(Secret, { prefix: "slo_9dWq" })];
const example = exampleOf(Operator, { secrets });
const exampleNew = exampleOf(NewOperator, { secrets });
const one = { id: words("Name or ID of the operator.") };

const operatorFlag = flag("<operator>", "name or ID of the operator");

const operatorColumns: Column<Operator>[] = [
  { head: "NAME", cell: ({ name }) => name },
  { head: "ROLE", cell: ({ role }) => role },
  { head: "STATE", cell: secretState },
  { head: "ID", cell: ({ id }) => id },
  { head: "LAST USED (UTC)", cell: ({ lastUsedAt }) => minute(lastUsedAt) ?? "never", optional: true },
  { head: "FROM", cell: ({ lastUsedFrom }) => lastUsedFrom ?? "", optional: true },
  { head: "ORGANIZATION", cell: ({ organizationId }) => organizationId ?? "all", optional: true },
];

const tokenSaid = ({ token }: NewOperator, first: string, last = "") =>
  secretSaid(first, token, `Store the token now; it is not shown again.\n${last}`);

const operatorFacts = (operator: Operator): Facts => [
  ["id", operator.id],
  ["name", operator.name],
  ["role", operator.role],
  ["organization", operator.organizationId],
  ["created", madeWords(operator)],
  ["expires", instant(operator.expiresAt) ?? "never"],
  ["revoked", instant(operator.revokedAt)],
  ["last used", usedWords(operator)],
  ["tokens", operator.secrets.map(({ prefix, suffix }) => `${prefix}…${suffix}`).join(", ")],
];

export const operatorVerbs = [
  verb({
    name: "pageOperators",
    route: "GET /operators",
    summary: "List operators",
    description: "In the order in which they were created.",
    roles: admins,
    faults: [],
    takes: Type.Object(partOfIds("op")),
    answers: partOf(Operator, "Operators"),
    example: { takes: {}, answer: { data: [example], nextCursor: null } },
    command: {
      words: "operator list",
      description: "list all operators",
      columns: operatorColumns,
      none: "There are no operators yet. To create one, run: sluice operator create NAME --role admin\n",
      parts: "all",
    },
    async act({ operators }, input) {
      const found = await operators.pageOperators({ limit: limitIn(input), after: input.cursor });
      return partFrom(found);
    },
  }),
  verb({
    name: "createOperator",
    route: "POST /operators",
    summary: "Create an operator",
    description: "The answer has the token, this once. The name stays in the audit log and is never used again.",
    roles: admins,
    kind: "creation",
    faults: ["resource_not_found", "already_exists", "idempotency_key_reused"],
    takes: Type.Object({
      name: formed(
        /^[A-Za-z0-9_.@+-]{1,64}$/,
        "a name of 1 to 64 letters, digits, and the characters . _ @ + -",
        "1 to 64 letters, digits, and `.`, `_`, `@`, `+`, `-`.",
      ),
      role: oneOf([...roles]),
      organization: Type.Optional(nullable(words("Slug or ID; of an `organization-admin`, and only of one."))),
      expires_at: Type.Optional(nullable(moment("ISO 8601 with a time zone, or a date in UTC; else never."))),
    }),
    answers: NewOperator,
    example: { takes: { name: "ann", role: "organization-admin", organization: "acme" }, answer: exampleNew },
    command: {
      words: "operator create",
      description: "create an operator and print the token once",
      takes: {
        name: flag("<name>", "who it is, for the audit log: letters, digits, and . _ @ + -"),
        role: { ...required("--role <role>", "what the operator may do"), hasChoices: true },
        organization: flag("--org <org>", "slug or ID of the organization of an organization-admin"),
        expiresAt: flag(
          "--expires <instant>",
          "when it expires: ISO 8601 with a time zone, or a date in UTC (default: never)",
        ),
      },
      says: (made) => tokenSaid(made, `Created operator ${made.name} (${made.id}).`),
      help: `
Roles: admin may do everything, viewer may read everything, and
organization-admin reads and manages the keys of one organization.

Examples:
  $ sluice operator create ann --role admin
  $ sluice operator create acme-ci --role organization-admin --org acme --expires 2027-01-31`,
    },
    async act(context, input) {
      const { operators, actor, newUuid, now_ms, repeatOf } = context;
      const { name, role } = input;
      const expiresAt = input.expiresAt == null ? null : parse.future(input.expiresAt, now_ms());
      const organizationId = await boundTo(context, role, input.organization ?? null);
      const secret = newSecret(context, "slo_");
      const made = await operators.createOperator({
        id: idOf(newUuid(), "op_"),
        name,
        role,
        organizationId,
        expiresAt,
        actor,
        secret: secretOf(secret),
        repeat: repeatOf("createOperator", input),
      });
      if (made === "name_taken") {
        fail(
          `There is or was an operator '${name}'. Choose another name: the audit log has this one.`,
          "already_exists",
        );
      }
      if (made === "reused") return reusedKey();
      if ("repeated" in made) return { ...(await operatorOf(context, made.repeated)), token: null };
      return { ...made, token: secret };
    },
  }),
  verb({
    name: "findOperator",
    route: "GET /operators/{id}",
    summary: "Show an operator",
    description: "By name or ID; never the token.",
    roles: admins,
    faults: ["resource_not_found"],
    takes: Type.Object(one),
    answers: Operator,
    example: { takes: { id: examples.operator }, answer: example },
    command: {
      words: "operator show",
      description: "show an operator without the token",
      takes: { id: operatorFlag },
      says: operatorFacts,
    },
    act: (context, input) => operatorOf(context, input.id),
  }),
  verb({
    name: "rotateOperator",
    route: "POST /operators/{id}/rotate",
    summary: "Give an operator a new token",
    description:
      "The ID stays. The old token works until its grace ends, 24 hours if none is given, or until it is revoked.",
    roles: admins,
    kind: "act",
    faults: ["resource_not_found", "wrong_state"],
    takes: Type.Object({ ...one, grace }),
    answers: NewOperator,
    example: { takes: { id: examples.operator, grace: "1h" }, answer: exampleNew },
    command: {
      words: "operator rotate",
      description: "give an operator a new token and print it once; the ID stays the same",
      takes: { id: operatorFlag, grace: graceFlag("token") },
      says: (made, _, now_ms) =>
        tokenSaid(made, `Rotated the token of operator ${made.name}.`, oldEndsInWords("operator", made, now_ms)),
    },
    async act(context, input) {
      const { operators } = context;
      const before = await operatorOf(context, input.id);
      const { kept, secret } = await rotated(context, before, {
        form: "slo_",
        grace_ms: input.grace,
        rotate: operators.rotateOperator,
        revoke: (input) => revoked(context, input),
        refusal: (why) => `The operator ${before.id} ${why}, and its token cannot be rotated. Create a new one.`,
        gone: noOperator,
      });
      return { ...kept, token: secret };
    },
  }),
  verb({
    name: "revokeOperator",
    route: "POST /operators/{id}/revoke",
    summary: "Revoke an operator",
    description:
      "The next request is refused. Repeating it changes nothing. The last one who can administer is not revoked: rotate its token, or make another admin first.",
    roles: admins,
    kind: "act",
    faults: ["resource_not_found", "wrong_state"],
    takes: Type.Object({ ...one, old: old("token") }),
    answers: Operator,
    example: { takes: { id: examples.operator }, answer: { ...example, revokedAt: examples.at } },
    command: {
      words: "operator revoke",
      description: "revoke an operator; the next request is refused",
      takes: { id: operatorFlag, old: oldFlag("token") },
      says: ({ name }, { old }) => `Revoked ${old ? "the old tokens of " : ""}operator ${name}.\n`,
    },
    async act(context, input) {
      const { id } = await operatorOf(context, input.id);
      return (await revoked(context, { id, old: input.old === true, actor: context.actor })) ?? noOperator(id);
    },
  }),
] as const;

async function operatorOf({ operators }: ManagementContext, id: string): Promise<Operator> {
  if (id.startsWith("slo_"))
    fail("That is the token itself. Specify the operator's ID instead, which begins with 'op_'.");
  return (await operators.findOperator(id)) ?? noOperator(id);
}

async function revoked({ operators }: ManagementContext, input: Revocation) {
  const operator = await operators.revokeOperator(input);
  return operator === "last_admin" ? lastAdministrator() : operator;
}

/**
 * The ID of the organization that an `organization-admin` administers; null for the other roles, which are not limited
 * to an organization.
 */
async function boundTo(
  { organizationOf }: ManagementContext,
  role: Role,
  organization: string | null,
): Promise<string | null> {
  if (role === "organization-admin") {
    if (organization === null) fail("An organization-admin needs an organization. Specify one.");
    return (await organizationOf(organization)).id;
  }
  if (organization !== null) fail(`Only an organization-admin is bound to an organization, not the role ${role}.`);
  return null;
}

function noOperator(id: string): never {
  return parse.missing("operator", id, " operators", "operator list");
}
