/** People, and one of them. */

import type { Answer } from "../core/client.ts";
import { may } from "../core/session.ts";
import { useAnswer } from "../core/use-answer.ts";
import { choicesOf } from "../core/verb-table.ts" with { type: "macro" };
import type { PageProps } from "../pages.ts";
import { Act } from "../parts/act.tsx";
import { Show } from "../parts/asked.tsx";
import { CommandLine } from "../parts/command-line.tsx";
import { type Filter, Filters, filtersSet } from "../parts/filters.tsx";
import { PersonLimits } from "../parts/limits.tsx";
import { OrganizationLink } from "../parts/links.tsx";
import { membershipWords, PeopleList } from "../parts/people-list.tsx";
import { Empty, Facts, Page, Section, State } from "../parts/section.tsx";
import { Suspension } from "../parts/suspension.tsx";
import { Table } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";

type Person = Answer<"findPerson">;

const filters: readonly Filter[] = [
  { name: "search", label: "Name or e-mail" },
  { name: "organization", label: "Organization" },
  { name: "suspended", label: "Suspended", choices: ["true", "false"] },
];

export function PeoplePage() {
  const input = filtersSet(filters);
  return (
    <Page title="People">
      <Filters of={filters} />
      <PeopleList input={input} />
      <CommandLine verb="pagePeople" input={input} />
    </Page>
  );
}

export function PersonPage({ id }: PageProps) {
  const asked = useAnswer("findPerson", { person: id });
  return (
    <Page title={asked.answer?.name ?? id} aside={asked.answer && <Acts of={asked.answer} changed={asked.reload} />}>
      <Show of={asked}>
        {(person) => (
          <>
            <Facts of={factsOf(person)} />
            <Section title="Memberships" aside={<Give person={person} changed={asked.reload} />}>
              <Memberships of={person} changed={asked.reload} />
            </Section>
            <Section title="Limits">
              <LimitsOf of={person} />
            </Section>
          </>
        )}
      </Show>
      <CommandLine verb="findPerson" input={{ person: id }} />
    </Page>
  );
}

function factsOf({ id, issuer, kind, email, is_email_verified, groups, created_at, confirmed_at }: Person) {
  return [
    ["e-mail", email && `${email}${is_email_verified ? "" : " (not verified)"}`],
    ["issuer", issuer],
    ["kind", kind],
    ["groups", groups.join(", ")],
    ["first seen", <Time key="c" at={created_at} />],
    ["confirmed", <Time key="f" at={confirmed_at} />],
    ["id", <code key="i">{id}</code>],
  ] as const;
}

interface Of {
  of: Person;
  changed: () => void;
}
type Membership = Person["memberships"][number];

function Memberships({ of: person, changed }: Of) {
  if (person.memberships.length === 0)
    return <Empty>None: no rule matches, and nobody gave one by hand. This person may do nothing.</Empty>;
  return (
    <Table<Membership>
      caption="Memberships"
      rows={person.memberships}
      keyOf={membershipWords}
      columns={[
        { head: "Organization", cell: ({ organization }) => <OrganizationLink slug={organization} /> },
        { head: "Role", cell: ({ role }) => role },
        { head: "Team", cell: ({ team }) => (team as { name: string } | null)?.name ?? "–" },
        { head: "Scopes", cell: ({ scopes }) => scopes.join(", ") },
        { head: "Models", cell: ({ models }) => (models as string[] | null)?.join(", ") ?? "every model" },
        { head: "From", cell: ({ source }) => (source === "hand" ? "given by hand" : "a rule") },
        may("takeMembership") && {
          head: "Acts",
          areActs: true,
          cell: (one) =>
            one.source === "hand" && (
              <span class="acts">
                <Take person={person} membership={one} changed={changed} />
              </span>
            ),
        },
      ]}
    />
  );
}

interface Taken {
  person: Person;
  membership: Membership;
  changed: () => void;
}

function Take({ person: { id, version }, membership: { organization, role }, changed }: Taken) {
  return (
    <Act
      label="Take"
      verb="takeMembership"
      given={{ person: id, version, ...(organization === null ? {} : { organization }) }}
      ends={{
        name: organization ?? role,
        what: "Ends this membership, with the person's keys and tokens there, unless a rule gives another.",
      }}
      done="The membership was taken."
      onDone={changed}
    />
  );
}

/** Their limits in each organization in which the person has a membership. */
function LimitsOf({ of: { id, memberships } }: { of: Person }) {
  const organizations = memberships.flatMap(({ organization }) => organization ?? []);
  if (organizations.length === 0) return <Empty>This person is in no organization, so there are no limits.</Empty>;
  return (
    <>
      {organizations.map((organization) => (
        <PersonLimits key={organization} organization={organization} person={id} />
      ))}
    </>
  );
}

function Give({ person: { id, version }, changed }: { person: Person; changed: () => void }) {
  return (
    <Act
      label="Give membership"
      verb="giveMembership"
      given={{ person: id, version }}
      fields={[
        {
          name: "organization",
          label: "Organization",
          hint: "Slug; empty: the service, for viewer and admin",
        },
        {
          name: "role",
          label: "Role",
          kind: "choice",
          isRequired: true,
          value: "member",
          choices: choicesOf("giveMembership", "role"),
        },
        { name: "team" },
        { name: "models", hint: "With commas; empty: every model" },
      ]}
      says="It stays, whatever the issuer's groups say."
      done="The membership was given."
      onDone={changed}
    />
  );
}

function Acts({ of: { id, name, email, state, version, memberships }, changed }: Of) {
  const given = { person: id, version };
  const called = email ?? name ?? id;
  return (
    <>
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
          label="Forget"
          verb="forgetPerson"
          given={given}
          ends={{
            name: called,
            what: "Erases name, e-mail, subject and groups for good, ends the memberships, and revokes the keys. Usage is kept under the ID.",
          }}
          done="The person is forgotten."
          onDone={changed}
        />
      )}
    </>
  );
}
