/** The settings of an organization: its plan, its billing cycle, and its rules for keys and content. */
import type { Answer } from "../core/client.ts";
import { moneyWritten } from "../core/money.ts";
import { SettingActs } from "./organization-acts.tsx";
import { Facts, Section } from "./section.tsx";
import { Time } from "./time.tsx";

type Organization = Answer<"findOrganization">;

export function Settings({ of, changed }: { of: Organization; changed: () => void }) {
  return (
    <Section title="Settings" aside={<SettingActs of={of} changed={changed} />}>
      <Facts of={factsOf(of)} />
    </Section>
  );
}

function factsOf(organization: Organization) {
  const { plan, key_lifetime_max_days: lifetime, key_unused_max_days: unused, extra_usage } = organization;
  const next = organization.next_anchor;
  return [
    ["slug", <code key="s">{organization.slug}</code>],
    ["plan", plan === null ? "none" : <a href={`/plans/${plan}`}>{plan}</a>],
    [
      "extra usage",
      extra_usage.enabled
        ? `up to ${extra_usage.cap === null ? "no cap" : moneyWritten(extra_usage.cap)} a month`
        : "off",
    ],
    ["calendar", organization.calendar && calendarWords(organization.calendar)],
    ["from then", organization.next_calendar && <NextCalendar key="c" of={organization.next_calendar} />],
    ["billing cycle starts", organization.calendar === null && <Time key="a" at={organization.anchor_at} />],
    ["from then", next && <NextCycle key="n" of={next} />],
    ["key expiry", lifetime === null ? "never" : `after ${lifetime} days`],
    ["disable unused keys", unused === null ? "never" : `after ${unused} days`],
    ["responses", organization.keeps_content ? "stored when a client asks" : "not stored"],
    ["created", <Time key="c" at={organization.created_at} />],
    ["was called", organization.former_slugs.join(", ")],
    ["id", <code key="i">{organization.id}</code>],
  ] as const;
}

function NextCycle({ of: { anchor_at, counts_from } }: { of: NonNullable<Organization["next_anchor"]> }) {
  return (
    <>
      <Time at={anchor_at} />, for months from <Time at={counts_from} /> on
    </>
  );
}

function calendarWords({ zone, week_starts, month_starts }: NonNullable<Organization["calendar"]>): string {
  const weekday = week_starts[0]!.toUpperCase() + week_starts.slice(1);
  return `${zone}: weeks begin on ${weekday}, months on day ${month_starts}`;
}

function NextCalendar({ of: { calendar, counts_from } }: { of: NonNullable<Organization["next_calendar"]> }) {
  return (
    <>
      {calendar === null ? "no calendar" : calendarWords(calendar)}, for months from <Time at={counts_from} /> on
    </>
  );
}
