/** One organization: what it used of its limits, and what is in it. */
import type { Answer, Input, VerbName } from "../core/client.ts";
import { may } from "../core/session.ts";
import { type Asked, useAnswer } from "../core/use-answer.ts";
import { SubjectSpend } from "../later.tsx";
import type { PageProps } from "../pages.ts";
import { Show } from "../parts/asked.tsx";
import { AuditList } from "../parts/audit-list.tsx";
import { CommandLine } from "../parts/command-line.tsx";
import { Invitations } from "../parts/invitations.tsx";
import { Keys } from "../parts/keys.tsx";
import { LimitRequests } from "../parts/limit-requests.tsx";
import { OrganizationLimits } from "../parts/limits.tsx";
import { OrganizationNotices } from "../parts/notices.tsx";
import { Money } from "../parts/number.tsx";
import { AdjustAct, StateActs } from "../parts/organization-acts.tsx";
import { Settings } from "../parts/organization-settings.tsx";
import { PeopleList } from "../parts/people-list.tsx";
import { requestsTab } from "../parts/request-list.tsx";
import { Facts, Page, Section, State } from "../parts/section.tsx";
import { type Tab, Tabs } from "../parts/tabs.tsx";
import { Teams } from "../parts/teams.tsx";
import { Time } from "../parts/time.tsx";
import { TopSpend } from "../parts/top-spend.tsx";
import { Windows } from "../parts/windows.tsx";

type Organization = Answer<"findOrganization">;

export function OrganizationPage({ id, tab }: PageProps) {
  const asked = useAnswer("findOrganization", { organization: id });
  const usage = useAnswer("readUsage", may("readUsage") ? { organization: id } : null);
  const open = useAnswer(
    "pageLimitRequests",
    may("pageLimitRequests") ? { organization: id, state: "open", limit: open_max } : null,
  );
  const changed = () => {
    for (const one of [asked, usage]) one.reload();
  };
  const found = asked.answer;
  return (
    <Page
      title={found?.name ?? id}
      up={{ href: "/organizations", name: "Organizations" }}
      aside={
        found && (
          <span class="acts">
            <State of={found.status} />
            <StateActs of={found} running={usage.answer?.running_requests ?? 0} changed={changed} />
          </span>
        )
      }
    >
      <Show of={asked}>
        {(organization) => (
          <Tabs
            base={`/organizations/${organization.slug}`}
            tab={tab}
            of={tabsOf({ organization, usage, open, changed }).map((one) => one && withCommand(one, organization.slug))}
          />
        )}
      </Show>
    </Page>
  );
}

interface Of {
  organization: Organization;
  usage: Asked<Answer<"readUsage">>;
  changed: () => void;
}

interface OfTabs extends Of {
  open: Asked<Answer<"pageLimitRequests">>;
}

const open_max = 99;
const countOf = ({ data, next_cursor }: Answer<"pageLimitRequests">) =>
  next_cursor === null ? data.length : `${data.length}+`;

type OwnTab = Tab & { verb: VerbName | null };

function tabsOf({ organization, usage, open, changed }: OfTabs): (OwnTab | false)[] {
  const { slug, version } = organization;
  return [
    {
      name: "Overview",
      path: "",
      verb: "findOrganization",
      shows: () => <Overview organization={organization} usage={usage} changed={changed} />,
    },
    may("findOrganizationLimits") && {
      name: "Limits",
      path: "limits",
      // This tab has no command of its own, because each form in it shows one.
      verb: null,
      shows: () => <OrganizationLimits organization={slug} version={version} changed={changed} />,
    },
    may("pageTeams") && {
      name: "Teams",
      path: "teams",
      verb: "pageTeams",
      shows: () => <Teams organization={slug} />,
    },
    may("pagePeople") && {
      name: "People",
      path: "people",
      verb: "pagePeople",
      shows: () => (
        <>
          <Section title="People" aside={<a href={`/people?organization=${slug}`}>With filters</a>}>
            <PeopleList input={{ organization: slug }} cursor="people" />
          </Section>
          {may("pageInvitations") && <Invitations organization={slug} />}
        </>
      ),
    },
    { name: "Keys", path: "keys", verb: "pageKeys", shows: () => <Keys organization={slug} /> },
    { ...requestsTab({ input: { organization: slug }, without: ["organization"] }), verb: "pageRequests" },
    may("pageLimitRequests") && {
      name: open.answer ? `Asked for more (${countOf(open.answer)})` : "Asked for more",
      path: "asked",
      verb: "pageLimitRequests",
      shows: () => (
        <Section title="Requests for more">
          <LimitRequests input={{ organization: slug }} none="Nobody has asked for more." changed={open.reload} />
        </Section>
      ),
    },
    may("pageNotices") && {
      name: "Notices",
      path: "notices",
      verb: "pageNotices",
      shows: () => <OrganizationNotices organization={slug} />,
    },
    may("pageAudit") && {
      name: "Audit",
      path: "audit",
      verb: "pageAudit",
      shows: () => (
        <Section title="Audit" aside={<a href={`/audit?organization=${slug}`}>With filters</a>}>
          <AuditList input={{ organization: slug }} cursor="audit" />
        </Section>
      ),
    },
    {
      name: "Settings",
      path: "settings",
      verb: "findOrganization",
      shows: () => <Settings of={organization} changed={changed} />,
    },
  ];
}

/** Adds to a tab of the page the command that returns the same data. */
function withCommand({ verb, shows, ...tab }: OwnTab, organization: string): Tab {
  const input = { organization } as Input<VerbName>;
  return {
    ...tab,
    shows: () => (
      <>
        {shows()}
        {verb && <CommandLine verb={verb} input={input as Record<string, unknown>} />}
      </>
    ),
  };
}

function Overview({ organization, usage, changed }: Of) {
  const { slug, plan, name } = organization;
  return (
    <>
      <Section
        title="Usage and limits"
        aside={
          <>
            {usage.at && (
              <span>
                as of <Time at={usage.at} />
              </span>
            )}
            <AdjustAct of={organization} changed={changed} />
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
      <SubjectSpend of={{ organization: slug }} by="team" />
      <div class="columns">
        <TopSpend title="Spend by person, this month" organization={slug} by="person" />
        <TopSpend title="Spend by model, this month" organization={slug} by="model" />
      </div>
      <Section title="Details">
        <Facts
          of={[
            ["name", name],
            ["slug", <code key="s">{slug}</code>],
            ["plan", plan === null ? "none: requests are refused" : <a href={`/plans/${plan}`}>{plan}</a>],
          ]}
        />
      </Section>
    </>
  );
}

function ExtraUsage({ of: { used, held, cap } }: { of: Answer<"readUsage">["extra_usage"] }) {
  return (
    <p class="fine">
      Extra usage: <Money of={used} /> used, <Money of={held} /> held, of <Money of={cap} none="no cap" />.
    </p>
  );
}
