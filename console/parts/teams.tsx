/** Teams of an organization, with their standing. */
import { useState } from "preact/hooks";
import type { ItemOf } from "../core/client.ts";
import { valueFields } from "../core/limit-fields.ts";
import { Act } from "./act.tsx";
import { RequestsOf } from "./links.tsx";
import { List } from "./list.tsx";
import { Section } from "./section.tsx";
import { Table } from "./table.tsx";
import { Share } from "./windows.tsx";

type Team = ItemOf<"pageTeams">;

export function Teams({ organization, changed }: { organization: string; changed: () => void }) {
  const [turn, setTurn] = useState(0);
  const made = () => {
    setTurn(turn + 1);
    changed();
  };
  return (
    <Section title="Teams" aside={<CreateTeam organization={organization} done={made} />}>
      <List
        key={turn}
        verb="pageTeams"
        input={{ organization }}
        cursor="teams"
        none="No team yet. A team groups keys, which then share its limits."
      >
        {(teams, reload) => (
          <Table<Team>
            caption="Teams"
            rows={teams}
            keyOf={({ id }) => id}
            columns={[
              { head: "Name", cell: ({ name, id }) => <RequestsOf by="team" id={id} words={name} /> },
              { head: "Keys", isNumber: true, cell: ({ keys }) => keys },
              { head: "Used", cell: ({ standing }) => <Share of={standing} /> },
              {
                head: "Acts",
                areActs: true,
                cell: (team) => <TeamActs of={team} changed={() => [reload(), changed()]} />,
              },
            ]}
          />
        )}
      </List>
    </Section>
  );
}

function CreateTeam({ organization, done }: { organization: string; done: () => void }) {
  return (
    <Act
      label="Create team"
      verb="createTeam"
      given={{ organization }}
      fields={[{ name: "name" }, ...valueFields("limits", null)]}
      isPrimary
      done="The team was created."
      onDone={done}
    />
  );
}

function TeamActs({ of: team, changed }: { of: Team; changed: () => void }) {
  return (
    <span class="acts">
      <Act
        label="Remove"
        verb="removeTeam"
        given={{ team: team.id }}
        ends={{ name: team.name, what: `Removes the team. Its ${team.keys} keys stay, without a team.` }}
        done="The team was removed."
        onDone={changed}
      />
    </span>
  );
}
