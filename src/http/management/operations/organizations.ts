/** Organizations: create, list, show, rename, suspend, resume, close, what they may use, and what they ask of keys. */
import Type from "typebox";
import { policyDays_max } from "../../../management/organization-changes.ts";
import { nullable, oneOf } from "../../../protocol/shapes/contract.ts";
import { type Organization, organizationStatuses } from "../../../store/directory.ts";
import { units_max } from "../../../store/ledger.ts";
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
import { organizationJson } from "../records.ts";
import { OrganizationRecord } from "../shapes.ts";

const acme: Type.Static<typeof OrganizationRecord> = {
  id: exampleIds.organization,
  slug: "acme",
  former_slugs: [],
  name: "Acme, Inc.",
  status: "active",
  plan: "pro",
  anchor_at: exampleAt,
  next_anchor: null,
  extra_usage: { enabled: false, cap_units: null },
  key_lifetime_max_days: null,
  key_unused_max_days: null,
  keeps_content: true,
  created_at: exampleAt,
  closed_at: null,
  version: 1,
};

const days = (description: string) =>
  Type.Optional(nullable(Type.Integer({ minimum: 1, maximum: policyDays_max, description })));
const read = (value: Organization) => value;
const tag = "Organizations";
const one = { tag, id: "organization", answers: OrganizationRecord, encode: organizationJson, read, also: [] } as const;
const change = { ...one, kind: "change" } as const;

export const organizationOperations: readonly ManagementOperation[] = [
  managementOperation({
    ...{ verb: "pageOrganizations", method: "get", path: "/organizations", tag, kind: "reading" },
    summary: "List organizations",
    description: "In the order in which they were created. An `organization-admin` sees the own one.",
    also: ["viewer", "organization-admin"],
    takes: Type.Object({
      ...pageParameters,
      status: Type.Optional(oneOf([...organizationStatuses], { "x-must-be": "active, suspended or closed" })),
      plan: Type.Optional(words("Only organizations on this plan.")),
    }),
    answers: pageSchema(OrganizationRecord, "Organizations"),
    example: { answer: { data: [acme], next_cursor: null } },
    encode: (page) => pageShown(page, organizationJson),
    read: (value: { data: Organization[]; nextCursor: string | null }) => pageRead(value, read),
  }),
  managementOperation({
    ...{ verb: "createOrganization", method: "post", path: "/organizations", tag, kind: "creation" },
    summary: "Create an organization",
    description: "Its slug is unique. Without a plan it is on `starter`.",
    also: [],
    takes: Type.Object({
      slug: words("1 to 63 lowercase letters, digits, and hyphens."),
      name: Type.Optional(nullable(words("Display name; else the slug."))),
      plan: Type.Optional(nullable(words("Name of a plan."))),
    }),
    answers: OrganizationRecord,
    example: { takes: { slug: "acme", name: "Acme, Inc.", plan: "pro" }, answer: acme },
    encode: organizationJson,
    read,
  }),
  managementOperation({
    ...{ ...one, verb: "findOrganization", method: "get", path: "/organizations/{id}", kind: "reading" },
    summary: "Show an organization",
    description: "By its slug or ID.",
    also: ["viewer", "organization-admin"],
    example: { id: "acme", answer: acme },
  }),
  managementOperation({
    ...{ ...change, verb: "suspendOrganization", method: "post", path: "/organizations/{id}/suspend" },
    summary: "Suspend an organization",
    description: "Its requests are refused, and what runs ends, until it is resumed.",
    takes: Type.Object({}),
    example: { id: "acme", takes: {}, answer: { ...acme, status: "suspended", version: 2 } },
  }),
  managementOperation({
    ...{ ...change, verb: "resumeOrganization", method: "post", path: "/organizations/{id}/resume" },
    summary: "Resume an organization",
    description: "Its requests are served again.",
    takes: Type.Object({}),
    example: { id: "acme", takes: {}, answer: { ...acme, version: 3 } },
  }),
  managementOperation({
    ...{ ...change, verb: "renameOrganization", method: "patch", path: "/organizations/{id}" },
    summary: "Rename an organization",
    description:
      "What is left out stays. Its ID stays, and with it its keys, records and reports. Its old slug names it no more, and is never another organization's.",
    takes: Type.Object({
      slug: Type.Optional(nullable(words("1 to 63 lowercase letters, digits, and hyphens."))),
      name: Type.Optional(nullable(words("Display name."))),
    }),
    example: {
      id: "acme",
      takes: { slug: "acme-eu" },
      answer: { ...acme, slug: "acme-eu", former_slugs: ["acme"], version: 2 },
    },
  }),
  managementOperation({
    ...{ ...change, verb: "updatePolicies", method: "patch", path: "/organizations/{id}/policies" },
    summary: "Change what an organization asks of its keys, and whether content is kept",
    description:
      "What is left out stays; null lifts a limit. Limits count at once, for the keys that there are, too; those that a limit ended work again when it is lifted. Once it keeps no content, its stored responses are deleted before this is answered.",
    takes: Type.Object({
      key_lifetime_max_days: days("How long a key works from when it is made or rotated."),
      key_unused_max_days: days("How long a key works from its last use, or from its creation."),
      keeps_content: Type.Optional(nullable(Type.Boolean({ description: "False: no word is stored." }))),
    }),
    example: {
      ...{ id: "acme", takes: { key_lifetime_max_days: 90 } },
      answer: { ...acme, key_lifetime_max_days: 90, version: 3 },
    },
  }),
  managementOperation({
    ...{ ...change, verb: "closeOrganization", method: "post", path: "/organizations/{id}/close" },
    summary: "Close an organization",
    description:
      "For good. Its keys are revoked, what runs ends, and nothing can be made or changed in it. Its records and reports stay for their time, 13 months; 15 months after, all that is left of it goes, but for the audit log and its slug, which is never another's. Repeating it changes nothing.",
    takes: Type.Object({}),
    example: {
      ...{ id: "acme", takes: {} },
      answer: { ...acme, status: "closed", plan: null, closed_at: exampleAt, version: 4 },
    },
  }),
  managementOperation({
    ...{ ...change, verb: "setPlan", method: "put", path: "/organizations/{id}/plan" },
    summary: "Change the plan",
    description: "The new limits apply from the next request on; what was used still counts.",
    takes: Type.Object({ plan: nullable(words("Name of a plan. Null: none, so inference is refused.")) }),
    example: { id: "acme", takes: { plan: "starter" }, answer: { ...acme, plan: "starter", version: 4 } },
  }),
  managementOperation({
    ...{ ...change, verb: "setAnchor", method: "put", path: "/organizations/{id}/anchor" },
    summary: "Count weeks and months from another instant",
    description: "From the end of the current month on.",
    takes: Type.Object({ anchor: words("ISO 8601 with a time zone, or a date in UTC.") }),
    example: { id: "acme", takes: { anchor: "2026-12-01" }, answer: { ...acme, version: 5 } },
  }),
  managementOperation({
    ...{ ...change, verb: "setExtraUsage", method: "put", path: "/organizations/{id}/extra-usage" },
    summary: "Allow or stop extra usage",
    description: "With a cap in micro-units a billing month it is on, with null it is off.",
    takes: Type.Object({ cap_units: nullable(Type.Integer({ minimum: 1, maximum: units_max })) }),
    example: {
      ...{ id: "acme", takes: { cap_units: 20_000_000 } },
      answer: { ...acme, extra_usage: { enabled: true, cap_units: 20_000_000 }, version: 6 },
    },
  }),
];
