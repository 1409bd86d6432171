/** Organizations: create, list, show, suspend, resume, and what they may use. */
import Type from "typebox";
import { nullable, oneOf } from "../../../protocol/shapes/contract.ts";
import type { Organization } from "../../../store/directory.ts";
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
  name: "Acme, Inc.",
  status: "active",
  plan: "pro",
  anchor_at: exampleAt,
  next_anchor: null,
  extra_usage: { enabled: false, cap_units: null },
  created_at: exampleAt,
  version: 1,
};

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
      status: Type.Optional(oneOf(["active", "suspended"], { "x-must-be": "active or suspended" })),
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
