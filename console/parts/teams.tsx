/** Teams of an organization, with their standing and limits. */
import { useState } from "preact/hooks";
import type { ItemOf } from "../core/client.ts";
import { limitFields } from "../core/form.ts";
import { Act } from "./act.tsx";
import { LimitWords } from "./limit-words.tsx";
import { RequestsOf } from "./links.tsx";
import { List } from "./list.tsx";
import { RaiseActs, RaisedLimits } from "./raise.tsx";
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
              { head: "Limits", cell: ({ limits, raise }) => <RaisedLimits of={limits} raise={raise} /> },
              { head: "New keys get", cell: ({ key_limits }) => <LimitWords of={key_limits} none="–" /> },
              { head: "Members get", cell: ({ member_limits }) => <LimitWords of={member_limits} none="–" /> },
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
      fields={[{ name: "name" }, ...limitFields("limits", null)]}
      isPrimary
      done="The team was created."
      onDone={done}
    />
  );
}

const limitsOfTeam = [
  { member: "limits", label: "Limit", says: "All keys of the team share these." },
  {
    member: "key_limits",
    label: "New keys",
    says: "Each new key of the team gets these. Keys that exist keep theirs.",
  },
  { member: "member_limits", label: "Members", says: "Each person of the team without limits of their own has these." },
] as const;

function TeamActs({ of: team, changed }: { of: Team; changed: () => void }) {
  return (
    <span class="acts">
      <RaiseActs verb="raiseTeam" given={{ team: team.id }} raise={team.raise} limits={team.limits} changed={changed} />
      {limitsOfTeam.map(({ member, label, says }) => (
        <Act
          key={member}
          label={label}
          verb="updateTeam"
          given={{ team: team.id, version: team.version }}
          fields={limitFields(member, team[member])}
          says={`${says} An empty field takes the limit away.`}
          done="The limits were changed."
          onDone={changed}
        />
      ))}
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
