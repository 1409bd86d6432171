/**
 * Organizations, which own keys, have a plan, and are charged. organization-changes.ts and organization-plan.ts change
 * them.
 */
import Type from "typebox";
import { type Currency, inWords, moneyOf } from "../../core/inference/money.ts";
import { Money, nullable, oneOf } from "../../core/protocol/shapes/contract.ts";
import type { Value } from "../../core/schema/codec.ts";
import { organizationStatuses } from "../../core/store/directory.ts";
import { idOf } from "../../core/store/ids.ts";
import { day, instant } from "../../core/time/written.ts";
import { exampleOf } from "../store/example.ts";
import { organizationFields, type Organization as StoredOrganization } from "../store/organization.ts";
import { calendarFacts, calendarFlags, calendarMembers, firstCalendar } from "./calendars.ts";
import { type Column, type Facts, flag } from "./command.ts";
import { type ManagementContext, reusedKey } from "./context.ts";
import { fail } from "./error.ts";
import { partFrom } from "./page.ts";
import { admins, limitIn, name, oneOrganization, partOf, partOfIds, readers, slug, words } from "./shapes.ts";
import {
  exampleStanding,
  over,
  overFlag,
  standing,
  standingColumn,
  standingFacts,
  withStanding,
  withStandings,
} from "./standing.ts";
import { verbsOf } from "./verb.ts";

const verb = verbsOf("Organizations");

const fields = {
  ...organizationFields,
  extra_usage: Type.Object({
    enabled: Type.Boolean(),
    cap: Type.Union([Money, Type.Null()], { description: "The most in a billing month. Null: it is off." }),
  }),
};
export const Organization = Type.Object(fields, { $id: "Organization" });
const OrganizationStanding = Type.Object({ ...fields, standing: standing() }, { $id: "OrganizationStanding" });
type OrganizationStanding = Value<typeof OrganizationStanding>;
export type Organization = Value<typeof Organization>;

export const acme = exampleOf(Organization);
const acmeNow: OrganizationStanding = { ...acme, standing: exampleStanding };

/** The plan of an organization that is created without naming one. */
export const plan_default = "starter";

export const organizationFlag = flag("<org>", "slug or ID of the organization");

const organizationColumns: Column<OrganizationStanding>[] = [
  { head: "SLUG", cell: (one) => one.slug },
  { head: "NAME", cell: (one) => one.name, breaks: true },
  { head: "STATUS", cell: (one) => one.status },
  { head: "PLAN", cell: (one) => one.plan ?? "none" },
  standingColumn,
  { head: "ID", cell: (one) => one.id, optional: true },
  { head: "CREATED", cell: (one) => day(one.createdAt), optional: true },
];

export function organizationShown(
  { extraUsage: { enabled, capNanos }, ...organization }: StoredOrganization,
  currency: Currency,
): Organization {
  // After extra usage is turned off, the store keeps its cap, which bounds the requests that still run. Answers leave
  // the cap out.
  const cap = enabled && capNanos !== null ? moneyOf(capNanos, currency) : null;
  return { ...organization, extraUsage: { enabled, cap } };
}

export async function shownOrganization(
  { currency }: Pick<ManagementContext, "currency">,
  organization: StoredOrganization,
): Promise<Organization> {
  return organizationShown(organization, await currency());
}

function organizationFacts(organization: Organization): Facts {
  const { enabled, cap } = organization.extraUsage;
  const on = cap === null ? "on" : `on, up to ${inWords(cap)} a billing month`;
  const next = organization.nextAnchor;
  return [
    ["id", organization.id],
    ["slug", organization.slug],
    ["former slugs", organization.formerSlugs.join(", ") || null],
    ["name", organization.name],
    ["status", organization.status],
    ["plan", organization.plan ?? "none: inference is refused"],
    ["extra usage", enabled ? on : "off"],
    ["billing cycle starts", instant(organization.anchorAt)],
    ["next billing cycle", next && `${instant(next.anchorAt)}, from ${instant(next.countsFrom)} on`],
    ...calendarFacts(organization),
    ...policyFacts(organization),
    ["created", instant(organization.createdAt)],
    ["closed", instant(organization.closedAt)],
    ["version", String(organization.version)],
  ];
}

export function policyFacts(organization: Organization): Facts {
  const after = (days: number | null) => (days === null ? "never" : `after ${days} days`);
  return [
    ["key expiry", after(organization.keyLifetimeMaxDays)],
    ["disable unused keys", after(organization.keyUnusedMaxDays)],
    ["responses", organization.keepsContent ? "stored when a client asks" : "not stored"],
  ];
}

export const pageOrganizations = verb({
  name: "pageOrganizations",
  route: "GET /organizations",
  summary: "List organizations",
  description: "Oldest first. An `organization-admin` sees only their own.",
  roles: readers,
  faults: [],
  takes: Type.Object({
    ...partOfIds("org"),
    status: Type.Optional(oneOf([...organizationStatuses], { "x-must-be": "active, suspended or closed" })),
    plan: Type.Optional(words("Only organizations on this plan.")),
    over,
  }),
  answers: partOf(OrganizationStanding, "Organizations"),
  example: { takes: {}, answer: { data: [acmeNow], nextCursor: null } },
  command: {
    words: "org list",
    description: "list all organizations",
    takes: { over: overFlag("organizations") },
    columns: organizationColumns,
    none: ({ over }) =>
      over === undefined
        ? "There are no organizations yet. To create one, run: sluice org create SLUG\n"
        : "There are no such organizations.\n",
    parts: "all",
  },
  async act(context, input) {
    const { administration, narrowedTo } = context;
    const { status, plan, over, cursor } = input;
    const organizationId = await narrowedTo(undefined);
    const page = { limit: limitIn(input), after: cursor, organizationId, status, plan, overPercent: over };
    const found = await administration.pageOrganizations(page);
    const currency = await context.currency();
    const items = found.items.map((one) => organizationShown(one, currency));
    return partFrom({ ...found, items: await withStandings(context, items) });
  },
});

export const findOrganization = verb({
  name: "findOrganization",
  route: "GET /organizations/{organization}",
  summary: "Show an organization",
  description: "By its slug or ID; with what it has used of its limits.",
  roles: readers,
  faults: ["resource_not_found"],
  takes: Type.Object(oneOrganization),
  answers: OrganizationStanding,
  example: { takes: { organization: "acme" }, answer: acmeNow },
  command: {
    words: "org show",
    description: "show an organization, and what it has used of its limits",
    takes: { organization: organizationFlag },
    says: (one) => [...organizationFacts(one), ...standingFacts(one.standing)],
  },
  act: async (context, input) =>
    withStanding(context, await shownOrganization(context, await context.organizationOf(input.organization))),
});

export const organizationVerbs = [
  pageOrganizations,
  verb({
    name: "createOrganization",
    route: "POST /organizations",
    summary: "Create an organization",
    description:
      "Its slug is unique. Without a plan it is on `starter`, without a zone its weeks and months begin as the configuration says.",
    roles: admins,
    kind: "creation",
    faults: ["already_exists", "idempotency_key_reused"],
    takes: Type.Object({
      slug: slug("1 to 63 lowercase letters, digits, and hyphens."),
      name: Type.Optional(nullable(name("Display name; else the slug."))),
      plan: Type.Optional(nullable(words("Name of a plan."))),
      ...calendarMembers,
    }),
    answers: Organization,
    example: { takes: { slug: "acme", name: "Acme, Inc.", plan: "pro" }, answer: acme },
    command: {
      words: "org create",
      description: "create an organization",
      takes: {
        slug: {
          ...flag("[slug]", "short name: lowercase letters, digits, and hyphens"),
          asks: { message: "Short name (slug) of the organization" },
        },
        name: flag("--name <name>", "display name (default: the slug)"),
        plan: flag("--plan <plan>", "plan (default: starter); to list plans, run: sluice plan list"),
        ...calendarFlags,
      },
      says: (made) =>
        `Created organization ${made.slug} (${made.id}) on plan ${made.plan}.\n` +
        `To create a key for it, run: sluice key create --org ${made.slug} --name NAME\n`,
      help: `
Examples:
  $ sluice org create acme
  $ sluice org create acme --name "Acme, Inc." --plan pro --json
  $ sluice org create acme --zone Europe/Berlin`,
    },
    async act(context, input) {
      const { administration, actor, knownPlan, newUuid, organizationOf, repeatOf } = context;
      const { slug } = input;
      const created = await administration.createOrganization({
        id: idOf(newUuid(), "org_"),
        slug,
        name: input.name ?? slug,
        plan: await knownPlan(input.plan ?? plan_default),
        calendar: await firstCalendar(context, input),
        actor,
        repeat: repeatOf("createOrganization", input),
      });
      if (created === "slug_taken") return takenSlug(administration, slug);
      if (created === "no_plan") return removedPlan();
      if (created === "reused") return reusedKey();
      const made = "repeated" in created ? await organizationOf(created.repeated) : created;
      return shownOrganization(context, made);
    },
  }),
  findOrganization,
] as const;

async function takenSlug({ formerOwner }: ManagementContext["administration"], slug: string): Promise<never> {
  const former = await formerOwner(slug);
  return fail(
    former
      ? `The slug '${slug}' was that of '${former.slug}' before, and is not used again. Choose another slug.`
      : `An organization '${slug}' already exists. Choose another slug.`,
    "already_exists",
  );
}

export function removedPlan(): never {
  return fail("This plan was removed meanwhile. To list all plans, run: sluice plan list");
}
