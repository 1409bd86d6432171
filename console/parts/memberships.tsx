/** The memberships of a person, and the actions that give and take them. */
import type { Answer } from "../core/client.ts";
import { may, membership } from "../core/session.ts";
import { choicesOf } from "../core/verb-table.ts" with { type: "macro" };
import { Act } from "./act.tsx";
import { OrganizationLink, ThingLink } from "./links.tsx";
import { membershipWords } from "./people-list.tsx";
import { organizationField, useOrganizations, useTeamField } from "./place-fields.ts";
import { Empty, Section } from "./section.tsx";
import { Table } from "./table.tsx";

type Person = Answer<"findPerson">;
type Membership = Person["memberships"][number];

interface Of {
  of: Person;
  changed: () => void;
}
export function Memberships({ of: person, changed }: Of) {
  return (
    <Section title="Memberships" aside={<Give person={person} changed={changed} />}>
      <MembershipTable of={person} changed={changed} />
    </Section>
  );
}

function MembershipTable({ of: person, changed }: Of) {
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
        { head: "Team", cell: teamOf },
        { head: "Scopes", cell: ({ scopes }) => scopes.join(", ") },
        { head: "Models", cell: ({ models }) => (models as string[] | null)?.join(", ") ?? "every model" },
        { head: "From", cell: ({ source }) => (source === "hand" ? "given by hand" : "a rule") },
        may("takeMembership") && {
          head: "Actions",
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

function teamOf({ team }: Membership) {
  const known = team as { id: string; name: string } | null;
  return known ? <ThingLink kind="team" id={known.id} name={known.name} /> : "–";
}

/** Whether a role belongs to one organization, so that an administrator of that organization can give it. */
const isOfOrganization = (role: string) => role === "member" || role === "organization-admin";

function Give({ person: { id, version, memberships }, changed }: { person: Person; changed: () => void }) {
  const places = useOrganizations();
  const team = useTeamField(places.only);
  const own = membership.value?.organization;
  const usual = memberships.find(({ organization }) => organization !== null)?.organization ?? places.only;
  const roles = choicesOf("giveMembership", "role");
  return (
    <Act
      label="Give membership"
      verb="giveMembership"
      given={{ person: id, version, ...(own && { organization: own }) }}
      fields={[
        ...(own ? [] : [organizationField({ ...places, only: usual }, "the service, for viewer and admin")]),
        { name: "role", value: "member", ...(own && { choices: roles.filter(isOfOrganization) }) },
        team,
        { name: "models", hint: "With commas; empty: every model" },
      ]}
      says="It stays, whatever the issuer's groups say."
      done="The membership was given."
      onDone={changed}
    />
  );
}
