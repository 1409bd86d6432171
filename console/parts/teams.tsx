/** Teams of an organization, with their standing and limits. */
import type { Answer, ItemOf } from "../core/client.ts";
import { limitFields } from "../core/form.ts";
import type { Asked } from "../core/use-answer.ts";
import { Act } from "./act.tsx";
import { Show } from "./asked.tsx";
import { LimitWords } from "./limit-words.tsx";
import { RequestsOf } from "./links.tsx";
import { RaiseActs, RaisedLimits } from "./raise.tsx";
import { Empty, Section } from "./section.tsx";
import { Table } from "./table.tsx";
import { Share } from "./windows.tsx";

type Team = ItemOf<"pageTeams">;

export function Teams({ organization, asked }: { organization: string; asked: Asked<Answer<"pageTeams">> }) {
  return (
    <Section title="Teams" aside={<CreateTeam organization={organization} done={asked.reload} />}>
      <Show of={asked}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty>No team yet. A team groups keys, which then share its limits.</Empty>
          ) : (
            <Table<Team>
              caption="Teams"
              rows={data}
              keyOf={({ id }) => id}
              columns={[
                { head: "Name", cell: ({ name, id }) => <RequestsOf by="team" id={id} words={name} /> },
                { head: "Keys", isNumber: true, cell: ({ keys }) => keys },
                { head: "Used", cell: ({ standing }) => <Share of={standing} /> },
                { head: "Limits", cell: ({ limits, raise }) => <RaisedLimits of={limits} raise={raise} /> },
                { head: "New keys get", cell: ({ key_limits }) => <LimitWords of={key_limits} /> },
                { head: "Acts", cell: (team) => <TeamActs of={team} changed={asked.reload} /> },
              ]}
            />
          )
        }
      </Show>
    </Section>
  );
}

function CreateTeam({ organization, done }: { organization: string; done: () => void }) {
  return (
    <Act
      label="Create team"
      verb="createTeam"
      given={{ organization }}
      fields={[{ name: "name", label: "Name", kind: "text", isRequired: true }, ...limitFields("limits", null)]}
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
        label="Limit"
        verb="updateTeam"
        given={{ team: team.id, version: team.version }}
        fields={limitFields("limits", team.limits)}
        says="Keys of the team share these. An empty field takes the limit away."
        done="The limits were changed."
        onDone={changed}
      />
      <RaiseActs verb="raiseTeam" given={{ team: team.id }} raise={team.raise} limits={team.limits} changed={changed} />
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
