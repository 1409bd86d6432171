/** One team: what it used of its limits, its members, keys and requests. */
import { may } from "../core/session.ts";
import { useAnswer } from "../core/use-answer.ts";
import { SubjectSpend } from "../later.tsx";
import type { PageProps } from "../pages.ts";
import { Show } from "../parts/asked.tsx";
import { auditTab } from "../parts/audit-list.tsx";
import { CommandLine } from "../parts/command-line.tsx";
import { Keys } from "../parts/keys.tsx";
import { LimitsOf } from "../parts/limits.tsx";
import { OrganizationLink } from "../parts/links.tsx";
import { PeopleList } from "../parts/people-list.tsx";
import { requestsTab } from "../parts/request-list.tsx";
import { Facts, Page, Section } from "../parts/section.tsx";
import { Tabs } from "../parts/tabs.tsx";
import { TeamActs } from "../parts/teams.tsx";
import { Time } from "../parts/time.tsx";

export function TeamPage({ id, tab }: PageProps) {
  const asked = useAnswer("findTeam", { team: id });
  const limits = useAnswer("findTeamLimits", { team: id });
  const found = asked.answer;
  return (
    <Page
      title={found?.name ?? "Team"}
      up={found && { href: `/organizations/${found.organization}/teams`, name: `Teams of ${found.organization}` }}
      aside={found && <TeamActs of={found} changed={asked.reload} />}
    >
      <Show of={asked}>
        {({ organization, created_at, version }) => (
          <Tabs
            base={`/teams/${id}`}
            tab={tab}
            of={[
              {
                name: "Overview",
                path: "",
                shows: () => (
                  <>
                    <LimitsOf
                      title="Usage and limits"
                      of={limits}
                      version={version}
                      changed={asked.reload}
                      none="Nothing limits the team but the limits of its organization."
                    />
                    <SubjectSpend of={{ team: id }} by="person" />
                    <Section title="Details">
                      <Facts
                        of={[
                          ["organization", <OrganizationLink key="o" slug={organization} />],
                          ["created", <Time key="c" at={created_at} />],
                          ["id", <code key="i">{id}</code>],
                        ]}
                      />
                    </Section>
                  </>
                ),
              },
              may("pagePeople") && {
                name: "Members",
                path: "members",
                shows: () => (
                  <Section title="Members">
                    <PeopleList
                      input={{ team: id }}
                      none="Nobody is in this team. The page of a person gives a membership, and so do rules of identity."
                    />
                  </Section>
                ),
              },
              { name: "Keys", path: "keys", shows: () => <Keys organization={organization} of={{ team: id }} /> },
              requestsTab({ input: { team: id }, without: ["organization"] }),
              auditTab(id),
            ]}
          />
        )}
      </Show>
      <CommandLine verb="findTeam" input={{ team: id }} />
    </Page>
  );
}
