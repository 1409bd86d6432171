/** Operators: who may use this interface. Only an admin sees them. */
import Type from "typebox";
import { nullable, oneOf } from "../../../protocol/shapes/contract.ts";
import { type Operator, roles } from "../../../store/operators.ts";
import { exampleAt, exampleIds, exampleSecret } from "../examples.ts";
import {
  type ManagementOperation,
  managementOperation,
  pageParameters,
  pageRead,
  pageSchema,
  pageShown,
  words,
} from "../operation.ts";
import { newOperatorJson, operatorJson } from "../records.ts";
import { NewOperatorRecord, OperatorRecord } from "../shapes.ts";

const example: Type.Static<typeof OperatorRecord> = {
  id: exampleIds.operator,
  name: "ann",
  role: "organization-admin",
  organization_id: exampleIds.organization,
  created_by: "cli:root",
  created_at: exampleAt,
  expires_at: null,
  revoked_at: null,
  last_used_at: null,
  last_used_from: null,
  secrets: [{ prefix: "slo_9dWq", ...exampleSecret }],
};
const token = `slo_${"x".repeat(38)}`;

const read = (value: Operator) => value;
const readNew = ({ token: secret, ...operator }: Operator & { token: string | null }) => ({
  operator,
  secret: secret ?? "",
});
const common = { tag: "Operators", also: [] } as const;
const one = { ...common, id: "id" } as const;

export const operatorOperations: readonly ManagementOperation[] = [
  managementOperation({
    ...{ ...common, verb: "pageOperators", method: "get", path: "/operators", kind: "reading" },
    summary: "List operators",
    description: "In the order in which they were created.",
    takes: Type.Object({ ...pageParameters }),
    answers: pageSchema(OperatorRecord, "Operators"),
    example: { answer: { data: [example], next_cursor: null } },
    encode: (page) => pageShown(page, operatorJson),
    read: (value: { data: Operator[]; nextCursor: string | null }) => pageRead(value, read),
  }),
  managementOperation({
    ...{ ...common, verb: "createOperator", method: "post", path: "/operators", kind: "creation" },
    summary: "Create an operator",
    description: "The answer has the token, this once. The name stays in the audit log and is never used again.",
    takes: Type.Object({
      name: words("1 to 64 letters, digits, and `.`, `_`, `@`, `+`, `-`."),
      role: oneOf([...roles]),
      organization: Type.Optional(nullable(words("Slug or ID; of an `organization-admin`, and only of one."))),
      expires: Type.Optional(nullable(words("ISO 8601 with a time zone, or a date in UTC; else never."))),
    }),
    answers: NewOperatorRecord,
    example: {
      takes: { name: "ann", role: "organization-admin", organization: "acme" },
      answer: { ...example, token },
    },
    encode: newOperatorJson,
    read: readNew,
  }),
  managementOperation({
    ...{ ...one, verb: "findOperator", method: "get", path: "/operators/{id}", kind: "reading" },
    summary: "Show an operator",
    description: "By name or ID; never the token.",
    answers: OperatorRecord,
    example: { id: exampleIds.operator, answer: example },
    encode: operatorJson,
    read,
  }),
  managementOperation({
    ...{ ...one, verb: "rotateOperator", method: "post", path: "/operators/{id}/rotate", kind: "act" },
    summary: "Give an operator a new token",
    description: "The ID stays. The old token works until its grace ends, or until it is revoked.",
    takes: Type.Object({ grace: Type.Optional(nullable(words("Such as `30m`, `1h`, `7d`, or `0s`."))) }),
    answers: NewOperatorRecord,
    example: { id: exampleIds.operator, takes: { grace: "1h" }, answer: { ...example, token } },
    encode: newOperatorJson,
    read: readNew,
  }),
  managementOperation({
    ...{ ...one, verb: "revokeOperator", method: "post", path: "/operators/{id}/revoke", kind: "act" },
    summary: "Revoke an operator",
    description: "The next request is refused. Repeating it changes nothing.",
    takes: Type.Object({
      old: Type.Optional(Type.Boolean({ description: "Only the tokens that a rotation replaced." })),
    }),
    answers: OperatorRecord,
    example: { id: exampleIds.operator, takes: {}, answer: { ...example, revoked_at: exampleAt } },
    encode: operatorJson,
    read,
  }),
];
