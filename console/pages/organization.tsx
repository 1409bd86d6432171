/** One organization: plan, windows, teams, keys, people, notices and audit. */
import type { Answer } from "../core/client.ts";
import { moneyWritten } from "../core/money.ts";
import { may } from "../core/session.ts";
import { useAnswer } from "../core/use-answer.ts";
import type { PageProps } from "../pages.ts";
import { Show } from "../parts/asked.tsx";
import { AuditList } from "../parts/audit-list.tsx";
import { CommandLine } from "../parts/command-line.tsx";
import { Keys } from "../parts/keys.tsx";
import { OrganizationLimits } from "../parts/limits.tsx";
import { Notices } from "../parts/notices.tsx";
import { Money } from "../parts/number.tsx";
import { AdjustAct, SettingActs, StateActs } from "../parts/organization-acts.tsx";
import { PeopleList } from "../parts/people-list.tsx";
import { Facts, Page, Section, State } from "../parts/section.tsx";
import { Teams } from "../parts/teams.tsx";
import { Time } from "../parts/time.tsx";
import { Windows } from "../parts/windows.tsx";

type Organization = Answer<"findOrganization">;

/** So many teams can be chosen of; of more, one is named. */
const teams_max = 200;

export function OrganizationPage({ id }: PageProps) {
  const asked = useAnswer("findOrganization", { organization: id });
  const usage = useAnswer("readUsage", may("readUsage") ? { organization: id } : null);
  const teams = useAnswer("pageTeams", may("pageTeams") ? { organization: id, limit: teams_max } : null);
  const changed = () => {
    for (const one of [asked, usage]) one.reload();
  };
  return (
    <Page
      title={asked.answer?.name ?? id}
      aside={
        asked.answer && (
          <>
            <State of={asked.answer.status} />{" "}
            <StateActs of={asked.answer} running={usage.answer?.running_requests ?? 0} changed={changed} />
          </>
        )
      }
    >
      <Show of={asked}>
        {(organization) => (
          <>
            <Section
              title="Windows"
              aside={
                <>
                  {usage.at && (
                    <span>
                      as of <Time at={usage.at} />
                    </span>
                  )}
                  <a href={`/usage?organization=${organization.slug}`}>Usage</a>
                  <a href={`/requests?organization=${organization.slug}`}>Requests</a>
                  <AdjustAct of={organization} changed={usage.reload} />
                </>
              }
            >
              <Show of={usage}>
                {(reading) => (
                  <>
                    <Windows of={reading} />
                    {reading.extra_usage.enabled && <ExtraUsage of={reading.extra_usage} />}
                  </>
                )}
              </Show>
            </Section>
            <Section title="What is in force" aside={<SettingActs of={organization} changed={changed} />}>
              <Facts of={factsOf(organization)} />
            </Section>
            <OrganizationLimits organization={organization.slug} changed={changed} />
            <Teams organization={organization.slug} changed={teams.reload} />
            <Keys organization={organization.slug} teams={namesOf(teams.answer)} />
            {may("pagePeople") && (
              <Section title="People" aside={<a href={`/people?organization=${organization.slug}`}>All</a>}>
                <PeopleList input={{ organization: organization.slug }} cursor="people" />
              </Section>
            )}
            {may("findNotices") && <Notices organization={organization.slug} />}
            {may("pageAudit") && (
              <Section title="Audit" aside={<a href={`/audit?organization=${organization.slug}`}>All</a>}>
                <AuditList input={{ organization: organization.slug }} cursor="audit" />
              </Section>
            )}
          </>
        )}
      </Show>
      <CommandLine verb="findOrganization" input={{ organization: id }} />
    </Page>
  );
}

/** Null: there are too many to choose of. */
function namesOf(teams: Answer<"pageTeams"> | null): string[] | null {
  if (teams?.next_cursor) return null;
  return teams?.data.map(({ name }) => name) ?? [];
}

function ExtraUsage({ of: { used, held, cap } }: { of: Answer<"readUsage">["extra_usage"] }) {
  return (
    <p class="fine">
      Extra usage: <Money of={used} /> used, <Money of={held} /> held, of <Money of={cap} none="no cap" />.
    </p>
  );
}

function AnchorWords({ of: { anchor_at, counts_from } }: { of: NonNullable<Organization["next_anchor"]> }) {
  return (
    <>
      <Time at={anchor_at} />, for months from <Time at={counts_from} /> on
    </>
  );
}

function calendarWords({ zone, week_starts, month_starts }: NonNullable<Organization["calendar"]>): string {
  return `${zone}: weeks from ${week_starts}, months from day ${month_starts}`;
}

function CalendarWords({ of: { calendar, counts_from } }: { of: NonNullable<Organization["next_calendar"]> }) {
  return (
    <>
      {calendar === null ? "no calendar" : calendarWords(calendar)}, for months from <Time at={counts_from} /> on
    </>
  );
}

function factsOf(organization: Organization) {
  const { plan, key_lifetime_max_days: lifetime, key_unused_max_days: unused, extra_usage } = organization;
  const next = organization.next_anchor;
  return [
    ["slug", <code key="s">{organization.slug}</code>],
    ["plan", plan === null ? "none" : <a href={`/plans/${plan}`}>{plan}</a>],
    ["calendar", organization.calendar && calendarWords(organization.calendar)],
    ["from then", organization.next_calendar && <CalendarWords key="c" of={organization.next_calendar} />],
    ["weeks from", organization.calendar === null && <Time key="a" at={organization.anchor_at} />],
    ["from then", next && <AnchorWords key="n" of={next} />],
    [
      "extra usage",
      extra_usage.enabled
        ? `up to ${extra_usage.cap === null ? "no cap" : moneyWritten(extra_usage.cap)} a month`
        : "off",
    ],
    ["keys live", lifetime === null ? "without end" : `${lifetime} days at most`],
    ["unused keys", unused === null ? "stay" : `end after ${unused} days`],
    ["content", organization.keeps_content ? "responses are kept when a client asks" : "nothing is kept"],
    ["created", <Time key="c" at={organization.created_at} />],
    ["was called", organization.former_slugs.join(", ")],
    ["id", <code key="i">{organization.id}</code>],
  ] as const;
}
