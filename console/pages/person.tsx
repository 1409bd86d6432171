/** One person: what they used of their limits, their memberships, keys and requests. */
import type { Answer } from "../core/client.ts";
import { useAnswer } from "../core/use-answer.ts";
import { SubjectSpend } from "../later.tsx";
import type { PageProps } from "../pages.ts";
import { Act } from "../parts/act.tsx";
import { Show } from "../parts/asked.tsx";
import { auditTab } from "../parts/audit-list.tsx";
import { CommandLine } from "../parts/command-line.tsx";
import { Keys, SignIns } from "../parts/keys.tsx";
import { LimitsOf } from "../parts/limits.tsx";
import { Memberships } from "../parts/memberships.tsx";
import { requestsTab } from "../parts/request-list.tsx";
import { Empty, Facts, Page, Section, State } from "../parts/section.tsx";
import { Suspension } from "../parts/suspension.tsx";
import { Tabs } from "../parts/tabs.tsx";
import { Time } from "../parts/time.tsx";

type Person = Answer<"findPerson">;

export function PersonPage({ id, tab }: PageProps) {
  const asked = useAnswer("findPerson", { person: id });
  const found = asked.answer;
  return (
    <Page
      title={found ? (found.name ?? found.email ?? "Person without a name") : "Person"}
      up={{ href: "/people", name: "People" }}
      aside={found && <Acts of={found} changed={asked.reload} />}
    >
      <Show of={asked}>
        {(person) => (
          <Tabs
            base={`/people/${id}`}
            tab={tab}
            of={[
              { name: "Overview", path: "", shows: () => <Overview of={person} changed={asked.reload} /> },
              { name: "Keys", path: "keys", shows: () => <KeysOf of={person} /> },
              requestsTab({
                input: { person: id },
                without: ["person"],
                none: "Nothing was asked by this person yet.",
              }),
              auditTab(id),
            ]}
          />
        )}
      </Show>
      <CommandLine verb="findPerson" input={{ person: id }} />
    </Page>
  );
}

interface Of {
  of: Person;
  changed: () => void;
}

function Overview({ of: person, changed }: Of) {
  return (
    <>
      {organizationsOf(person).map((organization) => (
        <PersonLimits key={organization} organization={organization} of={person} changed={changed} />
      ))}
      <SubjectSpend of={{ person: person.id }} />
      <Memberships of={person} changed={changed} />
      <Section title="Details">
        <Facts of={factsOf(person)} />
      </Section>
    </>
  );
}

const organizationsOf = ({ memberships }: Person) => memberships.flatMap(({ organization }) => organization ?? []);

function PersonLimits({ organization, of: { id, version }, changed }: Of & { organization: string }) {
  const asked = useAnswer("findPersonLimits", { organization, person: id });
  return (
    <LimitsOf
      title={`Usage and limits in ${organization}`}
      of={asked}
      version={version}
      changed={changed}
      none="Nothing limits this person but what limits their keys, their team and the organization."
    />
  );
}

function KeysOf({ of: person }: { of: Person }) {
  const organizations = organizationsOf(person);
  if (organizations.length === 0) return <Empty>A person has keys where there is a membership. There is none.</Empty>;
  return (
    <>
      {organizations.map((organization) => (
        <Keys
          key={organization}
          title={`Keys in ${organization}`}
          organization={organization}
          of={{ person: person.id }}
        />
      ))}
      {organizations.map((organization) => (
        <SignIns key={organization} organization={organization} person={person.id} />
      ))}
    </>
  );
}

function factsOf({ id, issuer, kind, email, is_email_verified, groups, created_at, confirmed_at }: Person) {
  return [
    ["e-mail", email && `${email}${is_email_verified ? "" : " (not verified)"}`],
    ["issuer", issuer],
    ["kind", kind],
    ["groups", groups.join(", ")],
    ["first seen", <Time key="c" at={created_at} />],
    ["last confirmed", <Time key="f" at={confirmed_at} />],
    ["id", <code key="i">{id}</code>],
  ] as const;
}

function Acts({ of: { id, name, email, state, version, memberships }, changed }: Of) {
  const given = { person: id, version };
  const called = email ?? name ?? id;
  return (
    <span class="acts">
      <State of={state} />
      <Suspension
        kind="Person"
        state={state}
        given={given}
        name={called}
        ends={`Ends the person's sessions and tokens, stops the keys in ${memberships.length} organizations, and ends their running requests, within a second.`}
        resumes="The person may sign in again, and the keys work."
        changed={changed}
      />
      {state !== "forgotten" && (
        <Act
          label="Erase personal data"
          verb="forgetPerson"
          given={given}
          ends={{
            name: called,
            what: "Erases name, e-mail, subject and groups for good, ends the memberships, and revokes the keys. Usage is kept under the ID.",
          }}
          done="The personal data is erased."
          onDone={changed}
        />
      )}
    </span>
  );
}
