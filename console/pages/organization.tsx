/** One organization: plan, windows, teams, keys, people, notices and audit. */
import type { Answer } from "../core/client.ts";
import { grouped } from "../core/format.ts";
import { may } from "../core/session.ts";
import { useAnswer } from "../core/use-answer.ts";
import type { PageProps } from "../pages.ts";
import { Act } from "../parts/act.tsx";
import { Show } from "../parts/asked.tsx";
import { AuditList } from "../parts/audit-list.tsx";
import { CommandLine } from "../parts/command-line.tsx";
import { Keys } from "../parts/keys.tsx";
import { Notices } from "../parts/notices.tsx";
import { PeopleList } from "../parts/people-list.tsx";
import { RaiseActs, RaiseWords } from "../parts/raise.tsx";
import { Badge, Facts, Page, Section, State } from "../parts/section.tsx";
import { Teams } from "../parts/teams.tsx";
import { Time } from "../parts/time.tsx";
import { Windows } from "../parts/windows.tsx";

type Organization = Answer<"findOrganization">;

const teams_max = 200;

export function OrganizationPage({ id }: PageProps) {
  const asked = useAnswer("findOrganization", { organization: id });
  const usage = useAnswer("readUsage", may("readUsage") ? { organization: id } : null);
  const teams = useAnswer("pageTeams", may("pageTeams") ? { organization: id, limit: teams_max } : null);
  const changed = () => {
    asked.reload();
    usage.reload();
  };
  return (
    <Page title={asked.answer?.name ?? id} aside={asked.answer && <Head of={asked.answer} changed={changed} />}>
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
            <Section title="What is in force">
              <Facts of={factsOf(organization)} />
            </Section>
            <Teams organization={organization.slug} asked={teams} />
            <Keys organization={organization.slug} teams={teams.answer?.data.map(({ name }) => name) ?? []} />
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

function ExtraUsage({ of: { used, held, cap_units } }: { of: Answer<"readUsage">["extra_usage"] }) {
  return (
    <p class="fine">
      Extra usage: {grouped(used)} units used, {grouped(held)} held, of{" "}
      {cap_units === null ? "no cap" : grouped(cap_units)}.
    </p>
  );
}

function factsOf(organization: Organization) {
  const { plan, key_lifetime_max_days: lifetime, key_unused_max_days: unused, extra_usage } = organization;
  return [
    ["slug", <code key="s">{organization.slug}</code>],
    ["plan", plan === null ? "none" : <a href={`/plans/${plan}`}>{plan}</a>],
    ["raised", organization.raise && <RaiseWords key="r" of={organization.raise} />],
    ["weeks from", <Time key="a" at={organization.anchor_at} />],
    [
      "extra usage",
      extra_usage.enabled
        ? `up to ${extra_usage.cap_units === null ? "no cap" : grouped(extra_usage.cap_units)} units a month`
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

function Head({ of: organization, changed }: { of: Organization; changed: () => void }) {
  const { slug, status, version, plan } = organization;
  const plans = useAnswer("listPlans", may("setPlan") ? {} : null);
  const given = { organization: slug, version };
  return (
    <>
      <State of={status} /> {plan && <Badge tone="calm">{plan}</Badge>}
      {status !== "closed" && (
        <Act
          label="Change plan"
          verb="setPlan"
          given={given}
          fields={[
            {
              name: "plan",
              label: "Plan",
              kind: "choice",
              isRequired: true,
              value: plan,
              choices: plans.answer?.data.map(({ name }) => name) ?? [],
            },
          ]}
          done="The plan was changed."
          onDone={changed}
        />
      )}
      {status !== "closed" && plan && (
        <RaiseActs
          verb="raiseOrganization"
          given={{ organization: slug }}
          raise={organization.raise}
          limits={null}
          changed={changed}
        />
      )}
      {status === "active" && (
        <Act
          label="Suspend"
          verb="suspendOrganization"
          given={given}
          ends={{
            name: slug,
            what: "Stops all keys of the organization and the requests that run by them, within a second on every node, until it is resumed.",
          }}
          done={`${slug} is suspended.`}
          onDone={changed}
        />
      )}
      {status === "suspended" && (
        <Act
          label="Resume"
          verb="resumeOrganization"
          given={given}
          says="Its keys work again."
          done={`${slug} is resumed.`}
          onDone={changed}
        />
      )}
    </>
  );
}
