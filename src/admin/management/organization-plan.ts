/**
 * The plan of an organization, the anchor (an instant) or calendar by which its weeks and months are counted, and usage
 * beyond the plan.
 */
import Type from "typebox";
import { inWords } from "../../core/inference/money.ts";
import { nullable } from "../../core/protocol/shapes/contract.ts";
import { instant } from "../../core/time/written.ts";
import type { Calendar } from "../store/calendar.ts";
import {
  calendarFacts,
  calendarFlags,
  calendarFrom,
  calendarMembers,
  isCalendarGiven,
  knownZone,
} from "./calendars.ts";
import { flag } from "./command.ts";
import { fail } from "./error.ts";
import { dollars, givenMoney, limitNanos } from "./money.ts";
import { change, changeOrganization, sent } from "./organization-change.ts";
import { acme, organizationFlag } from "./organizations.ts";
import * as parse from "./parse.ts";
import { examples, moment, oneOrganization, words } from "./shapes.ts";
import { someChange, verbsOf } from "./verb.ts";

const verb = verbsOf("Organizations");

export const organizationPlanVerbs = [
  verb({
    name: "setPlan",
    route: "PUT /organizations/{organization}/plan",
    summary: "Change the plan",
    description: "The new limits apply at once, also to running requests; what was used still counts.",
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
          ? `The billing cycle of ${slug} will start on ${instant(nextAnchor.anchorAt)}, from the end of the current month on, ${instant(nextAnchor.countsFrom)}. Its weeks will follow when the week then in progress ends.\n`
          : `The billing cycle of ${slug} starts on ${instant(anchorAt)}.\n`,
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
      const takesAway = input.zone === null;
      if (takesAway && (input.weekStarts != null || input.monthStarts != null))
        fail(
          "Without a time zone, weeks and months are counted from the start of the billing cycle. Leave out on which day they begin.",
        );
      if (!takesAway && !isCalendarGiven(input))
        fail("Specify the zone, or the day on which a week or a month begins.");
      return changeOrganization(context, input, async (id, version) => {
        const { actor, administration } = context;
        const zone = input.zone == null ? null : await knownZone(administration, input.zone);
        const after = (before: Calendar | null) => (takesAway ? null : calendarFrom({ ...input, zone }, before));
        return administration.setOrganizationCalendar(id, after, actor, version);
      });
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
