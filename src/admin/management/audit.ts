/** The audit log: who did what, chained by hash. */
import Type from "typebox";
import { count, oneOf } from "../../core/protocol/shapes/contract.ts";
import type { Value } from "../../core/schema/codec.ts";
import { minute } from "../../core/time/written.ts";
import { type Administration, type AuditQuery, NamedEntry } from "../store/administration.ts";
import { exampleOf } from "../store/example.ts";
import { type Column, flag } from "./command.ts";
import { examples, limitIn, partOf, partOfNumbers, readers, words } from "./shapes.ts";
import { verbsOf } from "./verb.ts";

const verb = verbsOf("Audit");

export const AuditEntries = partOf(NamedEntry, "AuditEntries");

export const exampleEntry = exampleOf(NamedEntry, {
  number: 42,
  actor: "operator:ann",
  address: "192.0.2.7",
  action: "organization.plan",
  organization: "acme",
  subject: examples.organization,
  subjectName: "acme",
  details: { plan: "pro", before: "starter" },
  hash: examples.hash,
});

const auditColumns: Column<NamedEntry>[] = [
  { head: "WHEN (UTC)", cell: (entry) => minute(entry.at) ?? "" },
  { head: "WHO", cell: (entry) => entry.actorName ?? entry.actor },
  { head: "WHAT", cell: (entry) => entry.action, breaks: true },
  { head: "SUBJECT", cell: (entry) => entry.subjectName ?? entry.subject, breaks: true },
  { head: "DETAILS", cell: detailsOf, breaks: true, optional: true },
];

function detailsOf({ details }: NamedEntry): string {
  return Object.entries(details)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(" ");
}

export const auditVerbs = [
  verb({
    name: "pageAudit",
    route: "GET /audit",
    summary: "Read the audit log",
    description:
      "Newest first, or with `order=oldest` as it was written. An `organization-admin` sees the entries of their own organization, whose numbers then have gaps.",
    roles: readers,
    faults: ["resource_not_found"],
    takes: Type.Object({
      ...partOfNumbers(),
      organization: Type.Optional(words("Only acts on this organization (slug or ID).")),
      actor: Type.Optional(words("Only acts of this actor.")),
      action: Type.Optional(words("Only acts of this name.")),
      subject: Type.Optional(words("Only acts on the thing with this ID.")),
      order: Type.Optional(oneOf(["newest", "oldest"], { "x-must-be": "newest or oldest" })),
    }),
    answers: AuditEntries,
    example: { takes: {}, answer: { data: [exampleEntry], nextCursor: "42" } },
    command: {
      words: "audit list",
      description: "list administrative actions, newest first",
      takes: {
        organization: flag("--org <org>", "list only actions on this organization (slug or ID)"),
        subject: flag("--subject <id>", "list only actions on the thing with this ID, such as a team"),
        limit: { ...flag("--limit <n>", "number of entries, 1 to 1000 (default: 50)"), fallback: 50 },
      },
      columns: auditColumns,
      none: "The audit log is empty.\n",
    },
    async act({ administration, narrowedTo }, input) {
      const { actor, action, subject, order } = input;
      const organizationId = await narrowedTo(input.organization);
      return partOfAudit(administration, { organizationId, actor, action, subject, order }, input);
    },
  }),
  verb({
    name: "auditHead",
    route: "GET /audit/head",
    summary: "Read the head of the audit log's chain",
    description:
      "Keep it somewhere else: with it, `sluice audit verify` proves later that no entry up to this one was changed, removed or added.",
    roles: ["admin", "viewer"],
    faults: [],
    takes: Type.Object({}),
    answers: Type.Object({ number: count(), hash: Type.String() }, { $id: "AuditHead" }),
    example: { takes: {}, answer: { number: 42, hash: examples.hash } },
    command: {
      words: "audit head",
      description: "print the head of the log's chain; keep it elsewhere, for audit verify",
      says: ({ number, hash }) => `${number}:${hash}\n`,
    },
    act: ({ administration }) => administration.auditHead(),
  }),
] as const;

/**
 * One page of the audit log, newest first unless the query says otherwise. The cursor is the number of the page's last
 * entry.
 */
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
