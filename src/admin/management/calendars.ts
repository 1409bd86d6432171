/** Calendars of organizations: the time zone by which their weeks and months begin (docs/design/usage.md, Calendars). */

import Type from "typebox";
import { nullable } from "../../core/protocol/shapes/contract.ts";
import type { Given } from "../../core/schema/codec.ts";
import { instantIn, instant as instantWritten, isZone } from "../../core/time/written.ts";
import { Calendar } from "../store/calendar.ts";
import type { Organization } from "../store/organization.ts";
import { instant } from "../store/shapes.ts";
import { type Facts, flag } from "./command.ts";
import type { ManagementContext } from "./context.ts";
import { fail } from "./error.ts";
import { excerpt } from "./parse.ts";
import { examples, words } from "./shapes.ts";
import { verbsOf } from "./verb.ts";

const verb = verbsOf("Organizations");

export const zone = words("A name of the IANA time zone database, such as Europe/Berlin.");
const { week_starts, month_starts } = Calendar.properties;

/** The members of a verb's input that set a calendar. `month_starts` without a zone keeps the current zone. */
export const calendarMembers = {
  zone: Type.Optional(nullable(zone)),
  week_starts: Type.Optional(nullable(week_starts)),
  month_starts: Type.Optional(nullable(month_starts)),
};
const CalendarInput = Type.Object(calendarMembers);
type CalendarInput = Given<typeof CalendarInput>;

export const calendarFlags = {
  zone: flag("--zone <zone>", "time zone by whose clocks weeks and months begin, such as Europe/Berlin"),
  weekStarts: {
    ...flag("--week-starts <day>", "day on which a week begins (default: monday)"),
    hasChoices: true,
  },
  monthStarts: flag("--month-starts <day>", "day on which a month begins, 1 to 31 (default: 1)"),
} as const;

export const isCalendarGiven = ({ zone, weekStarts, monthStarts }: CalendarInput) =>
  zone != null || weekStarts != null || monthStarts != null;

/** A calendar with the given members; the members that are left out come from the existing calendar. */
export function calendarFrom({ zone, weekStarts, monthStarts }: CalendarInput, before: Calendar | null): Calendar {
  return {
    zone: zone ?? before?.zone ?? fail("Specify the time zone, too, such as Europe/Berlin."),
    weekStarts: weekStarts ?? before?.weekStarts ?? "monday",
    monthStarts: monthStarts ?? before?.monthStarts ?? 1,
  };
}

/**
 * The calendar of a new organization: the given values, completed from the configuration's calendar. A zone of null
 * means no calendar.
 */
export async function firstCalendar(
  context: Pick<ManagementContext, "administration" | "calendar">,
  given: CalendarInput,
): Promise<Calendar | null> {
  const ofService = given.zone === null ? null : await context.calendar();
  if (!ofService && !isCalendarGiven(given)) return null;
  const first = calendarFrom(given, ofService);
  return { ...first, zone: await knownZone(context.administration, first.zone) };
}

export async function knownZone(administration: ManagementContext["administration"], name: string): Promise<string> {
  const known = await administration.knownZone(name);
  if (known !== null && isZone(known)) return known;
  const label = excerpt(name);
  if (known === null && !isZone(name))
    fail(`There is no time zone '${label}'. Use a name of the IANA time zone database, such as Europe/Berlin.`);
  const whose = known === null ? "The database" : "This server";
  return fail(`${whose} does not know the time zone '${label}'. Update its time zone data, or use another zone.`);
}

const Zones = Type.Object(
  {
    data: Type.Array(
      Type.Object({
        zone,
        offsets: Type.Array(
          Type.Object({
            from: instant("From when its clocks are so far ahead."),
            to: instant("Until when, at most a year from now."),
            seconds: Type.Integer({ description: "How far they are ahead of UTC." }),
          }),
        ),
      }),
    ),
  },
  { $id: "Zones" },
);

export const calendarVerbs = [
  verb({
    name: "listZones",
    route: "GET /zones",
    summary: "List the time zones of organizations",
    description:
      "With the changes of their clocks in the coming year, by the rules that the database knows: windows begin by them.",
    roles: ["admin", "viewer"],
    faults: [],
    takes: Type.Object({}),
    answers: Zones,
    example: {
      takes: {},
      answer: {
        data: [{ zone: "Europe/Berlin", offsets: [{ from: examples.at, to: examples.at, seconds: 3_600 }] }],
      },
    },
    command: {
      words: "org zones",
      description: "list the time zones of organizations, and when their clocks change in the coming year",
      columns: [
        { head: "ZONE", cell: ({ zone }) => zone },
        { head: "CLOCKS CHANGE", cell: ({ zone, offsets }) => changesIn(zone, offsets), breaks: true },
      ],
      none: "No organization has a time zone.\n",
    },
    act: async ({ administration }) => ({ data: await administration.zones() }),
  }),
] as const;

function changesIn(zone: string, offsets: readonly { from: Date }[]): string {
  const changes = offsets.slice(1).map(({ from }) => (isZone(zone) ? instantIn(from, zone) : instantWritten(from)));
  return changes.join(", ") || "-";
}

/** A calendar in words: `Europe/Berlin: weeks begin on monday, months on day 1`. */
export function calendarWords(calendar: Calendar | null): string {
  if (calendar === null) return "none";
  return `${calendar.zone}: weeks begin on ${calendar.weekStarts}, months on day ${calendar.monthStarts}`;
}

export function calendarFacts({ calendar, nextCalendar }: Pick<Organization, "calendar" | "nextCalendar">): Facts {
  const zone = (nextCalendar?.calendar ?? calendar)?.zone;
  return [
    ["calendar", calendar && calendarWords(calendar)],
    [
      "next calendar",
      nextCalendar &&
        `${calendarWords(nextCalendar.calendar)}; months are counted by it from ${instantIn(nextCalendar.countsFrom, zone ?? "UTC")} on`,
    ],
  ];
}
