/** The audit log: who did what, chained by hash. */
import Type from "typebox";
import type { Value } from "../schema/codec.ts";
import type { Administration, AuditQuery } from "../store/directory.ts";
import {
  count,
  examples,
  id,
  instant,
  limitIn,
  nullable,
  oneOf,
  partOf,
  partOfNumbers,
  readers,
  words,
} from "./shapes.ts";
import { verb } from "./verb.ts";

export const AuditEntry = Type.Object(
  {
    number: Type.Integer({ minimum: 1, description: "Without gaps." }),
    at: instant("When it was done."),
    actor: Type.String({ description: "`operator:<name>`, `cli:<user>` or `service`." }),
    address: nullable(Type.String({ description: "Where it was asked from. Null: on the node." })),
    action: Type.String(),
    organization_id: nullable(id("org")),
    subject: Type.String({ description: "The id of what it was done to." }),
    details: Type.Unknown({ description: "What changed; `before` is what it was. No secrets." }),
    hash: nullable(
      Type.String({
        pattern: "^[0-9a-f]{64}$",
        description: "SHA-256 over the hash of the entry before and this one. Null: from before the chain.",
      }),
    ),
  },
  { $id: "AuditEntry" },
);
export type AuditEntry = Value<typeof AuditEntry>;
export const AuditEntries = partOf(AuditEntry, "AuditEntries");

const example: AuditEntry = {
  number: 42,
  at: examples.at,
  actor: "operator:ann",
  address: "192.0.2.7",
  action: "organization.plan",
  organizationId: examples.organization,
  subject: examples.organization,
  details: { plan: "pro", before: "starter" },
  hash: examples.hash,
};

export const auditVerbs = [
  verb({
    name: "pageAudit",
    method: "get",
    path: "/audit",
    tag: "Audit",
    summary: "Read the audit log",
    description:
      "Newest first, or with `order=oldest` as it was written. An `organization-admin` sees the entries of the own organization, whose numbers then have gaps.",
    roles: readers,
    kind: "reading",
    faults: ["resource_not_found"],
    takes: Type.Object({
      ...partOfNumbers(),
      organization: Type.Optional(words("Only acts on this organization (slug or ID).")),
      actor: Type.Optional(words("Only acts of this actor.")),
      action: Type.Optional(words("Only acts of this name.")),
      order: Type.Optional(oneOf(["newest", "oldest"], { "x-must-be": "newest or oldest" })),
    }),
    answers: AuditEntries,
    example: { takes: {}, answer: { data: [example], nextCursor: "42" } },
    async act({ administration, narrowedTo }, input) {
      const { actor, action, order } = input;
      const organizationId = await narrowedTo(input.organization);
      return partOfAudit(administration, { organizationId, actor, action, order }, input);
    },
  }),
  verb({
    name: "auditHead",
    method: "get",
    path: "/audit/head",
    tag: "Audit",
    summary: "Read where the chain of the audit log stands",
    description:
      "Keep it somewhere else: with it, `sluice audit verify` proves later that no entry up to this one was changed, removed or added.",
    roles: ["admin", "viewer"],
    kind: "reading",
    faults: [],
    takes: Type.Object({}),
    answers: Type.Object({ number: count(), hash: Type.String() }, { $id: "AuditHead" }),
    example: { takes: {}, answer: { number: 42, hash: examples.hash } },
    act: ({ administration }) => administration.auditHead(),
  }),
] as const;

/** A part of the log, newest first unless the query says otherwise. The cursor is the number of the last entry. */
export async function partOfAudit(
  { listAudit }: Pick<Administration, "listAudit">,
  query: Omit<AuditQuery, "limit" | "before" | "after">,
  page: { limit?: number; cursor?: string },
): Promise<Value<typeof AuditEntries>> {
  const limit = limitIn(page);
  const beyond = page.cursor === undefined ? undefined : Number(page.cursor);
  const from = query.order === "oldest" ? { after: beyond } : { before: beyond };
  const found = await listAudit({ ...query, ...from, limit: limit + 1 });
  const data = found.slice(0, limit);
  return { data, nextCursor: found.length > limit ? String(data.at(-1)!.number) : null };
}
