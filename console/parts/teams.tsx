/** The teams of an organization, and the actions on a team. */
import { go } from "../core/address.ts";
import type { Answer, ItemOf } from "../core/client.ts";
import { valueFields } from "../core/limit-fields.ts";
import { Act } from "./act.tsx";
import { OrganizationLink, ThingLink } from "./links.tsx";
import { List } from "./list.tsx";
import { organizationField, useOrganizations } from "./place-fields.ts";
import { Section } from "./section.tsx";
import { Table } from "./table.tsx";
import { Distance } from "./time.tsx";
import { Share } from "./windows.tsx";

type Team = ItemOf<"pageTeams">;

export function Teams({ organization }: { organization: string }) {
  return (
    <Section title="Teams" aside={<CreateTeam organization={organization} />}>
      <TeamList input={{ organization }} cursor="teams" />
    </Section>
  );
}

interface Listed {
  input: Record<string, string>;
  cursor?: string;
  /** Whether the rows may be of several organizations. */
  hasOrganizations?: boolean;
  none?: string | undefined;
}

const noTeam = "No team yet. A team groups keys and people, who then share its limits.";

export function TeamList({ input, cursor, hasOrganizations = false, none = noTeam }: Listed) {
  return (
    <List verb="pageTeams" input={input as never} cursor={cursor} none={none}>
      {(teams) => (
        <Table<Team>
          caption="Teams"
          rows={teams}
          keyOf={({ id }) => id}
          columns={[
            { head: "Name", cell: ({ name, id }) => <ThingLink kind="team" id={id} name={name} /> },
            hasOrganizations && {
              head: "Organization",
              cell: ({ organization }) => <OrganizationLink slug={organization} />,
            },
            { head: "Keys", isNumber: true, cell: ({ keys }) => keys },
            { head: "Used", cell: ({ standing }) => <Share of={standing} /> },
            { head: "Created", cell: ({ created_at }) => <Distance at={created_at} /> },
          ]}
        />
      )}
    </List>
  );
}

/** Creates a team. Without an organization, the form asks for one if there are several. */
export function CreateTeam({ organization }: { organization: string | null }) {
  const places = useOrganizations();
  const known = organization ?? places.only;
  return (
    <Act
      label="Create team"
      verb="createTeam"
      given={known === null ? {} : { organization: known }}
      fields={[
        ...(known === null ? [organizationField(places)] : []),
        { name: "name" },
        ...valueFields("limits", null),
      ]}
      isPrimary
      done="The team was created."
    />
  );
}

export function TeamActs({ of: team, changed }: { of: Answer<"findTeam">; changed: () => void }) {
  return (
    <span class="acts">
      <Act
        label="Rename"
        verb="updateTeam"
        given={{ team: team.id, version: team.version }}
        fields={[{ name: "name", value: team.name, isRequired: true }]}
        done="The team was renamed."
        onDone={changed}
      />
      <Act
        label="Remove"
        verb="removeTeam"
        given={{ team: team.id }}
        ends={{ name: team.name, what: `Removes the team. Its ${team.keys} keys stay, without a team.` }}
        done="The team was removed."
        onDone={() => go(`/organizations/${team.organization}/teams`)}
      />
    </span>
  );
}
