/** People, and one of them. */

import type { Answer } from "../core/client.ts";
import { useAnswer } from "../core/use-answer.ts";
import type { PageProps } from "../pages.ts";
import { Act } from "../parts/act.tsx";
import { Show } from "../parts/asked.tsx";
import { CommandLine } from "../parts/command-line.tsx";
import { type Filter, Filters, filtersSet } from "../parts/filters.tsx";
import { OrganizationLink } from "../parts/links.tsx";
import { membershipWords, PeopleList } from "../parts/people-list.tsx";
import { Empty, Facts, Page, Section, State } from "../parts/section.tsx";
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
              <Memberships of={person} />
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

function Memberships({ of: { memberships } }: { of: Person }) {
  if (memberships.length === 0)
    return <Empty>None: no rule matches, and nobody gave one by hand. She may do nothing.</Empty>;
  return (
    <Table<Person["memberships"][number]>
      caption="Memberships"
      rows={memberships}
      keyOf={membershipWords}
      columns={[
        { head: "Organization", cell: ({ organization }) => <OrganizationLink slug={organization} /> },
        { head: "Role", cell: ({ role }) => role },
        { head: "Team", cell: ({ team }) => (team as { name: string } | null)?.name ?? "–" },
        { head: "Scopes", cell: ({ scopes }) => scopes.join(", ") },
        { head: "Models", cell: ({ models }) => (models as string[] | null)?.join(", ") ?? "every model" },
        { head: "From", cell: ({ source }) => (source === "hand" ? "given by hand" : "a rule") },
      ]}
    />
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
          kind: "text",
          hint: "Slug; empty: the service, for viewer and admin",
        },
        {
          name: "role",
          label: "Role",
          kind: "choice",
          isRequired: true,
          value: "member",
          choices: ["member", "organization-admin", "viewer", "admin"],
        },
        { name: "team", label: "Team", kind: "text" },
      ]}
      says="It stays, whatever the issuer's groups say."
      done="The membership was given."
      onDone={changed}
    />
  );
}

function Acts({ of: { id, name, email, state, version, memberships }, changed }: { of: Person; changed: () => void }) {
  const given = { person: id, version };
  return (
    <>
      <State of={state} />
      {state === "active" && (
        <Act
          label="Suspend"
          verb="suspendPerson"
          given={given}
          ends={{
            name: email ?? name ?? id,
            what: `Ends her sessions and tokens, stops her keys in ${memberships.length} organizations, and ends what runs by them, within a second.`,
          }}
          done="She is suspended."
          onDone={changed}
        />
      )}
      {state === "suspended" && (
        <Act
          label="Resume"
          verb="resumePerson"
          given={given}
          says="She may sign in again, and her keys work."
          done="She is resumed."
          onDone={changed}
        />
      )}
    </>
  );
}
