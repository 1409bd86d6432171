/** Changes of organizations: their names, state and plan, and what they ask of their keys. */
import Type from "typebox";
import { inWords } from "../../core/inference/money.ts";
import { nullable } from "../../core/protocol/shapes/contract.ts";
import type { Policies } from "../../core/store/directory.ts";
import { instant as instantWritten } from "../../core/time/written.ts";
import type { Changed } from "../store/administration.ts";
import { calendarFacts, calendarFlags, calendarFrom, calendarMembers } from "./calendars.ts";
import { flag } from "./command.ts";
import { isClosed, type ManagementContext, noOrganization } from "./context.ts";
import { fail } from "./error.ts";
import { dollars, givenMoney, limitNanos } from "./money.ts";
import {
  acme,
  findOrganization,
  Organization,
  organizationFlag,
  policyFacts,
  removedPlan,
  shownOrganization,
} from "./organizations.ts";
import * as parse from "./parse.ts";
import { admins, examples, moment, name, oneOrganization, slug, words } from "./shapes.ts";
import { confirmation, someChange, verbsOf } from "./verb.ts";
import { changed } from "./version.ts";

const verb = verbsOf("Organizations");

const sent = { organization: "acme" };
/** The fields that all these verbs have in common. */
const change = {
  roles: admins,
  kind: "change",
  faults: ["resource_not_found", "wrong_state", "version_conflict"],
  answers: Organization,
} as const;

const statusWords = ({ slug, status }: Organization) => `Organization ${slug} is ${status}.\n`;

/** Ten years: what is longer means never, and that is null. */
const policyDays_max = 3650;
const days = (description: string) =>
  Type.Optional(nullable(Type.Integer({ minimum: 1, maximum: policyDays_max, description })));

export const organizationChangeVerbs = [
  verb({
    name: "suspendOrganization",
    route: "POST /organizations/{organization}/suspend",
    summary: "Suspend an organization",
    description: "Ends its running requests, and refuses new ones until it is resumed.",
    ...change,
    takes: Type.Object(oneOrganization),
    example: { takes: sent, answer: { ...acme, status: "suspended", version: 2 } },
    command: {
      words: "org suspend",
      description: "suspend an organization; its requests are refused until you resume it",
      takes: { organization: organizationFlag },
      says: statusWords,
    },
    act: (context, input) => withStatus(context, input, "suspended"),
  }),
  verb({
    name: "resumeOrganization",
    route: "POST /organizations/{organization}/resume",
    summary: "Resume an organization",
    description: "Its requests are served again.",
    ...change,
    takes: Type.Object(oneOrganization),
    example: { takes: sent, answer: { ...acme, version: 3 } },
    command: {
      words: "org resume",
      description: "resume a suspended organization",
      takes: { organization: organizationFlag },
      says: statusWords,
    },
    act: (context, input) => withStatus(context, input, "active"),
  }),
  verb({
    name: "renameOrganization",
    route: "PATCH /organizations/{organization}",
    summary: "Rename an organization",
    description:
      "What is left out stays. Its ID, keys, records and reports stay too. Its old slug stops working, and is never given to another organization.",
    ...change,
    faults: ["resource_not_found", "already_exists", "wrong_state", "version_conflict"],
    takes: Type.Object(
      {
        ...oneOrganization,
        slug: Type.Optional(nullable(slug("1 to 63 lowercase letters, digits, and hyphens."))),
        name: Type.Optional(nullable(name("Display name."))),
      },
      someChange,
    ),
    example: {
      takes: { ...sent, slug: "acme-eu" },
      answer: { ...acme, slug: "acme-eu", formerSlugs: ["acme"], version: 2 },
    },
    command: {
      words: "org rename",
      description: "change the slug or the name of an organization; its ID, keys and records stay",
      takes: {
        organization: organizationFlag,
        slug: flag("--slug <slug>", "new short name; the old one stops working, and is never given to another"),
        name: flag("--name <name>", "new display name"),
      },
      needsOneOf: "--slug or --name",
      versioned: "organization",
      says: ({ id, slug, name }) => `Organization ${id} is now ${slug} (${name}).\n`,
    },
    async act(context, input) {
      const { slug, name } = input;
      if (slug == null && name == null) fail("Specify the organization's new slug or name.");
      const names = { ...(slug == null ? {} : { slug }), ...(name == null ? {} : { name }) };
      return changeOrganization(context, input, (id, version) =>
        context.administration.renameOrganization(id, names, context.actor, version),
      );
    },
  }),
  verb({
    name: "updatePolicies",
    route: "PATCH /organizations/{organization}/policies",
    summary: "Change when an organization's keys expire, and whether responses are stored",
    description:
      "What is left out stays; null removes a limit. Limits apply at once, to existing keys too; keys that a limit ended work again when it is removed. If content is not kept, stored responses are deleted before this is answered.",
    ...change,
    takes: Type.Object(
      {
        ...oneOrganization,
        key_lifetime_max_days: days("How long a key works from when it is made or rotated."),
        key_unused_max_days: days("How long a key works from its last use, or from its creation."),
        keeps_content: Type.Optional(nullable(Type.Boolean({ description: "False: no word is stored." }))),
      },
      someChange,
    ),
    example: {
      takes: { ...sent, key_lifetime_max_days: 90 },
      answer: { ...acme, keyLifetimeMaxDays: 90, version: 3 },
    },
    command: {
      words: "org policy",
      description: "show or set when the keys of an organization expire, and whether responses are stored",
      takes: {
        organization: organizationFlag,
        keyLifetimeMaxDays: {
          ...flag("--key-lifetime <days>", "key expiry, from when a key is made or rotated: 90d, or none for never"),
          unit: "d",
          none: "none",
        },
        keyUnusedMaxDays: {
          ...flag("--key-unused <days>", "disable unused keys, so long after the last use: 30d, or none for never"),
          unit: "d",
          none: "none",
        },
        keepsContent: {
          ...flag("--content <keep|none>", "none stops storing responses, and deletes those that are stored"),
          words: { keep: true, none: false },
        },
      },
      reads: findOrganization,
      versioned: "organization",
      says: (found, { organization: _, ...changes }) => ({
        pieces: [{ facts: policyFacts(found) }, ...(Object.keys(changes).length === 0 ? [] : endedBy(found))],
      }),
      help: `
Examples:
  $ sluice org policy acme --key-lifetime 90d --key-unused 30d
  $ sluice org policy acme --key-unused none
  $ sluice org policy acme --content none`,
    },
    async act(context, input) {
      const { keyLifetimeMaxDays, keyUnusedMaxDays, keepsContent } = input;
      const policies: Partial<Policies> = {
        ...(keyLifetimeMaxDays === undefined ? {} : { keyLifetimeMaxDays }),
        ...(keyUnusedMaxDays === undefined ? {} : { keyUnusedMaxDays }),
        ...(keepsContent == null ? {} : { keepsContent }),
      };
      if (Object.keys(policies).length === 0) fail("Specify which policy to change.");
      const updated = await changeOrganization(context, input, (id, version) =>
        context.administration.setPolicies(id, policies, context.actor, version),
      );
      if (!updated.keepsContent) await context.administration.purgeContent(updated.id);
      return updated;
    },
  }),
  verb({
    name: "closeOrganization",
    route: "POST /organizations/{organization}/close",
    summary: "Close an organization",
    description:
      "Permanent. Its keys are revoked, running requests end, and nothing can be created or changed in it. Its records and reports are kept for 13 months. After 15 months, everything is deleted except the audit log and its slug, which is never given to another. Repeating it changes nothing.",
    ...change,
    takes: Type.Object(oneOrganization),
    example: {
      takes: sent,
      answer: { ...acme, status: "closed", plan: null, closedAt: examples.at, version: 4 },
    },
    command: {
      words: "org close",
      description: "close an organization for good: its keys are revoked; its records are kept for 13 months",
      takes: { organization: organizationFlag },
      versioned: "organization",
      confirms: confirmation(findOrganization, {
        question: ({ slug }) =>
          `Close ${slug} for good? Its keys are revoked, its stored responses are deleted, and it cannot be opened again.`,
        refusal: "Nothing was closed.",
        needsYes: "Closing an organization cannot be undone. To close it without a prompt, use --yes.",
      }),
      says: ({ slug }) => `Organization ${slug} is closed.\n`,
    },
    async act(context, input) {
      const { administration, actor, organizationOf } = context;
      const organization = await organizationOf(input.organization);
      const isRepeat = organization.status === "closed" && input.version === undefined;
      const closed = isRepeat
        ? await shownOrganization(context, organization)
        : await changeOrganization(context, input, (id, version) =>
            administration.closeOrganization(id, actor, version),
          );
      await administration.purgeContent(closed.id);
      return closed;
    },
  }),
  verb({
    name: "setPlan",
    route: "PUT /organizations/{organization}/plan",
    summary: "Change the plan",
    description: "The new limits apply from the next request on; what was used still counts.",
    ...change,
    takes: Type.Object({
      ...oneOrganization,
      plan: nullable(words("Name of a plan. Null: none, so inference is refused.")),
    }),
    example: { takes: { ...sent, plan: "starter" }, answer: { ...acme, plan: "starter", version: 4 } },
    command: {
      words: "org plan",
      description: "change the plan of an organization; the new limits apply at once",
      takes: {
        organization: organizationFlag,
        plan: {
          ...flag("[plan]", "new plan; to list plans, run: sluice plan list"),
          none: flag("--none", "remove the plan; inference requests are then refused"),
        },
      },
      says: ({ slug, plan }) =>
        plan === null
          ? `Organization ${slug} now has no plan; its inference requests are refused.\n`
          : `Organization ${slug} is now on plan ${plan}; its usage so far still counts.\n`,
    },
    async act(context, input) {
      const plan = input.plan === null ? null : await context.knownPlan(input.plan);
      return changeOrganization(context, input, (id, version) =>
        context.administration.setOrganizationPlan(id, plan, context.actor, version),
      );
    },
  }),
  verb({
    name: "setAnchor",
    route: "PUT /organizations/{organization}/anchor",
    summary: "Set when the billing cycle starts",
    description: "The instant from which weeks and months are counted, from the end of the current month on.",
    ...change,
    takes: Type.Object({ ...oneOrganization, anchor: moment("ISO 8601 with a time zone, or a date in UTC.") }),
    example: { takes: { ...sent, anchor: "2026-12-01" }, answer: { ...acme, version: 5 } },
    command: {
      words: "org anchor",
      description: "set when the billing cycle starts: weeks and months count from there once the current month ends",
      takes: {
        organization: organizationFlag,
        anchor: flag("<instant>", "ISO 8601 with a time zone, or a date in UTC"),
      },
      says: ({ slug, anchorAt, nextAnchor }) =>
        nextAnchor
          ? `The billing cycle of ${slug} will start on ${instantWritten(nextAnchor.anchorAt)}, from the end of the current month on, ${instantWritten(nextAnchor.countsFrom)}. Its weeks will follow when the week then in progress ends.\n`
          : `The billing cycle of ${slug} starts on ${instantWritten(anchorAt)}.\n`,
      help: `
Examples:
  $ sluice org anchor acme 2026-12-01
  $ sluice org anchor acme 2026-12-31T09:30:00+01:00`,
    },
    async act(context, input) {
      const anchorAt = parse.anchor(input.anchor);
      return changeOrganization(context, input, (id, version) =>
        context.administration.setOrganizationAnchor(id, anchorAt, context.actor, version),
      );
    },
  }),
  verb({
    name: "updateCalendar",
    route: "PATCH /organizations/{organization}/calendar",
    summary: "Count weeks and months by the clocks of a time zone",
    description:
      "What is left out stays; a zone of null counts them from the start of the billing cycle again. The running week and month end as they would have. One window each then reaches to the next boundary of the new calendar, with its limits in proportion. At most one change a month. Where nothing was used yet, it holds at once.",
    ...change,
    takes: Type.Object({ ...oneOrganization, ...calendarMembers }, someChange),
    example: {
      takes: { ...sent, zone: "Europe/Berlin" },
      answer: {
        ...acme,
        nextCalendar: {
          calendar: { zone: "Europe/Berlin", weekStarts: "monday", monthStarts: 1 },
          countsFrom: examples.at,
        },
        version: 6,
      },
    },
    command: {
      words: "org update",
      description: "set the time zone by whose clocks weeks and months begin, once the current ones end",
      takes: {
        organization: organizationFlag,
        ...calendarFlags,
        zone: {
          ...calendarFlags.zone,
          none: flag("--no-zone", "count them from the start of the billing cycle in UTC again"),
        },
      },
      needsOneOf: "--zone, --no-zone, --week-starts or --month-starts",
      versioned: "organization",
      says: (organization) => ({ pieces: [{ facts: [["slug", organization.slug], ...calendarFacts(organization)] }] }),
      help: `
Examples:
  $ sluice org update acme --zone Europe/Berlin
  $ sluice org update acme --zone America/New_York --week-starts sunday --month-starts 15
  $ sluice org update acme --no-zone`,
    },
    async act(context, input) {
      const { calendar, nextCalendar } = await context.organizationOf(input.organization);
      const before = nextCalendar ? nextCalendar.calendar : calendar;
      const takesAway = input.zone === null;
      if (takesAway && (input.weekStarts != null || input.monthStarts != null))
        fail(
          "Without a time zone, weeks and months are counted from the start of the billing cycle. Leave out on which day they begin.",
        );
      const wanted = takesAway ? null : await calendarFrom(context, input, before);
      if (wanted === undefined) fail("Specify the zone, or the day on which a week or a month begins.");
      return changeOrganization(context, input, (id, version) =>
        context.administration.setOrganizationCalendar(id, wanted, context.actor, version),
      );
    },
  }),
  verb({
    name: "setExtraUsage",
    route: "PUT /organizations/{organization}/extra-usage",
    summary: "Allow or stop extra usage",
    description: "With a cap for a billing month it is on, with null it is off.",
    ...change,
    takes: Type.Object({ ...oneOrganization, cap: nullable(givenMoney("The most in a billing month.")) }),
    example: {
      takes: { ...sent, cap: "20" },
      answer: { ...acme, extraUsage: { enabled: true, cap: dollars(20_000_000_000) }, version: 6 },
    },
    command: {
      words: "org extra-usage",
      description: "allow or stop usage beyond the limits of the plan",
      takes: {
        organization: organizationFlag,
        cap: {
          ...flag("--cap <money>", "most in a billing month, such as 50; required with on"),
          none: flag("<on|off>", "on allows extra usage, off stops it"),
        },
      },
      says: ({ slug, extraUsage }) =>
        extraUsage.enabled
          ? `Extra usage of ${slug} is on, up to ${extraUsage.cap ? inWords(extraUsage.cap) : "any amount"} a billing month.\n`
          : `Extra usage of ${slug} is off.\n`,
      help: `
Examples:
  $ sluice org extra-usage acme on --cap 50
  $ sluice org extra-usage acme off`,
    },
    async act(context, input) {
      const { cap } = input;
      const extra =
        cap === null
          ? ({ enabled: false } as const)
          : ({ enabled: true, capNanos: limitNanos(cap, await context.currency(), "cap") } as const);
      return changeOrganization(context, input, (id, version) =>
        context.administration.setExtraUsage(id, extra, context.actor, version),
      );
    },
  }),
] as const;

/** How to list the keys that a change of policies has ended. */
function endedBy({ slug, keyLifetimeMaxDays, keyUnusedMaxDays }: Organization): string[] {
  const states = [
    ...(keyLifetimeMaxDays === null ? [] : ["expired"]),
    ...(keyUnusedMaxDays === null ? [] : ["unused"]),
  ];
  const lines = states.map(
    (state) => `To list keys that it ended, run: sluice key list --org ${slug} --state ${state}\n`,
  );
  return lines.length === 0 ? [] : [lines.join("")];
}

interface Change {
  organization: string;
  version?: number;
  /** The new slug, where it is one. */
  slug?: string | null;
}
type Refused = "no_plan" | "slug_taken" | "has_calendar" | "calendar_changes";
type Write = (id: string, version: number | null) => Promise<Changed | Refused>;

async function changeOrganization(context: ManagementContext, input: Change, write: Write): Promise<Organization> {
  const { id, slug } = await context.organizationOf(input.organization);
  const answer = await write(id, input.version ?? null);
  return changed(
    context,
    { read: input.version, id },
    {
      schema: Organization,
      title: (now) => `Organization '${now.slug}'`,
      listed: (now) => shownOrganization(context, now),
      refusals: {
        gone: () => noOrganization(slug),
        closed: () => isClosed(slug),
        no_plan: removedPlan,
        has_calendar: () =>
          fail(
            `Weeks and months of '${slug}' are counted by its calendar, and not from the start of a billing cycle. To take it away, run: sluice org update ${slug} --no-zone`,
            "wrong_state",
          ),
        calendar_changes: () => calendarChanges(context, id),
        slug_taken: () => {
          const taken = parse.excerpt(input.slug ?? "");
          return fail(`The slug '${taken}' is or was another organization's. Choose another one.`, "already_exists");
        },
      },
    },
    answer,
  );
}

async function calendarChanges({ organizationOf }: ManagementContext, id: string): Promise<never> {
  const { slug, nextCalendar } = await organizationOf(id);
  const until = nextCalendar ? `, on ${instantWritten(nextCalendar.countsFrom)}` : "";
  return fail(
    `The calendar of '${slug}' was already changed this month, and can be changed again when the month ends${until}.`,
    "wrong_state",
  );
}

async function withStatus(
  context: ManagementContext,
  input: Change,
  status: "active" | "suspended",
): Promise<Organization> {
  const organization = await context.organizationOf(input.organization);
  if (organization.status === status && input.version === undefined) return shownOrganization(context, organization);
  return changeOrganization(context, input, (id, version) =>
    context.administration.setOrganizationStatus(id, status, context.actor, version),
  );
}
