/** The audit log, and where its chain stands. */
import Type from "typebox";
import { oneOf } from "../../../protocol/shapes/contract.ts";
import { auditShown } from "../../../store/audit-chain.ts";
import type { AuditEntry, AuditHead } from "../../../store/directory.ts";
import { exampleAt, exampleIds } from "../examples.ts";
import {
  type ManagementOperation,
  managementOperation,
  pageParameters,
  pageRead,
  pageSchema,
  pageShown,
  words,
} from "../operation.ts";
import { AuditHeadRecord, AuditRecord } from "../shapes.ts";

const hash = "9f2c".repeat(16);
const example: Type.Static<typeof AuditRecord> = {
  number: 42,
  at: exampleAt,
  actor: "operator:ann",
  address: "192.0.2.7",
  action: "organization.plan",
  organization_id: exampleIds.organization,
  subject: exampleIds.organization,
  details: { plan: "pro", before: "starter" },
  hash,
};
/** The history of a plan is a part of the log, too. */
export const auditPage = pageSchema(AuditRecord, "AuditEntries");

export const auditOperations: readonly ManagementOperation[] = [
  managementOperation({
    ...{ verb: "pageAudit", method: "get", path: "/audit", tag: "Audit", kind: "reading" },
    summary: "Read the audit log",
    description:
      "Newest first, or with `order=oldest` as it was written. An `organization-admin` sees the entries of the own organization, whose numbers then have gaps.",
    also: ["viewer", "organization-admin"],
    takes: Type.Object({
      ...pageParameters,
      organization: Type.Optional(words("Only acts on this organization (slug or ID).")),
      actor: Type.Optional(words("Only acts of this actor.")),
      action: Type.Optional(words("Only acts of this name.")),
      order: Type.Optional(oneOf(["newest", "oldest"], { "x-must-be": "newest or oldest" })),
    }),
    answers: auditPage,
    example: { answer: { data: [example], next_cursor: "42" } },
    encode: (page) => pageShown(page, auditShown),
    read: (value: { data: AuditEntry[]; nextCursor: string | null }) => pageRead(value, (entry) => entry),
  }),
  managementOperation({
    ...{ verb: "auditHead", method: "get", path: "/audit/head", tag: "Audit", kind: "reading" },
    summary: "Read where the chain of the audit log stands",
    description:
      "Keep it somewhere else: with it, `sluice audit verify` proves later that no entry up to this one was changed, removed or added.",
    also: ["viewer"],
    answers: AuditHeadRecord,
    example: { answer: { number: 42, hash } },
    encode: (head) => head,
    read: (head: AuditHead) => head,
  }),
];
