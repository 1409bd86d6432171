/** Keys of an organization, and what can be done with them. */
import type { ItemOf } from "../core/client.ts";
import type { Field } from "../core/form.ts";
import { limitFields, limitNames } from "../core/form.ts";
import { compacted, shortId, wordsOf } from "../core/format.ts";
import { Act } from "./act.tsx";
import { Block } from "./copy.tsx";
import { RequestsOf } from "./links.tsx";
import { List } from "./list.tsx";
import { Section, State } from "./section.tsx";
import { Table } from "./table.tsx";
import { Distance } from "./time.tsx";
import { Share } from "./windows.tsx";

type Key = ItemOf<"pageKeyBudgets">;

export function Keys({ organization, teams }: { organization: string; teams: readonly string[] }) {
  return (
    <List
      verb="pageKeyBudgets"
      input={{ organization }}
      cursor="keys"
      none={
        <p>
          No key yet. A client calls with one. {<CreateKey organization={organization} teams={teams} done={() => {}} />}
        </p>
      }
    >
      {(keys, reload) => (
        <Section title="Keys" aside={<CreateKey organization={organization} teams={teams} done={reload} />}>
          <Table<Key>
            caption="Keys"
            rows={keys}
            keyOf={({ id }) => id}
            columns={[
              { head: "Name", cell: ({ name, id }) => <RequestsOf by="key" id={id} words={name} /> },
              {
                head: "ID",
                cell: ({ id }) => (
                  <code title={id} class="nowrap">
                    {shortId(id)}
                  </code>
                ),
              },
              { head: "State", cell: ({ state }) => <State of={state} /> },
              { head: "Team", cell: ({ team }) => team?.name ?? "–" },
              { head: "Used", cell: ({ standing }) => <Share of={standing} /> },
              { head: "Limits", cell: ({ limits }) => <LimitWords of={limits} /> },
              { head: "Last used", cell: ({ last_used_at }) => <Distance at={last_used_at} none="never" /> },
              { head: "Ends", cell: ({ ends_at }) => <Distance at={ends_at} none="never" /> },
              { head: "Acts", cell: (key) => <KeyActs of={key} teams={teams} changed={reload} /> },
            ]}
          />
        </Section>
      )}
    </List>
  );
}

export function LimitWords({ of }: { of: Record<(typeof limitNames)[number], number | null> | null }) {
  const set = limitNames.filter((name) => of?.[name] != null);
  if (set.length === 0) return <span class="fine">none of its own</span>;
  return <>{set.map((name) => `${wordsOf(name)} ${compacted(of![name]!)}`).join(", ")}</>;
}

interface Made {
  organization: string;
  teams: readonly string[];
  done: () => void;
}

export function CreateKey({ organization, teams, done }: Made) {
  const fields: Field[] = [
    { name: "name", label: "Name", kind: "text", isRequired: true, hint: "Who or what calls with it" },
    { name: "team", label: "Team", kind: "choice", choices: teams },
    { name: "expires", label: "Expires", kind: "day", hint: "Empty: as the organization's policy says" },
    { name: "models", label: "Models", kind: "list", hint: "With commas; empty: every model" },
    ...limitFields("limits", null).filter(({ name }) => /week|month|concurrent/.test(name)),
  ];
  return (
    <Act
      label="Create key"
      verb="createKey"
      given={{ organization }}
      fields={fields}
      isPrimary
      done="The key was created."
      onDone={done}
      result={({ key }: { key: string | null }) => <Secret of={key} />}
    />
  );
}

export function Secret({ of }: { of: string | null }) {
  if (of === null) return <p class="told">This was a repeat. Rotate to get another secret.</p>;
  return (
    <div class="told">
      <p>Copy it now: it is shown this once.</p>
      <Block text={of} label="Secret" />
    </div>
  );
}

function KeyActs({ of: key, teams, changed }: { of: Key; teams: readonly string[]; changed: () => void }) {
  if (key.state === "revoked") return null;
  const running = key.standing?.running_requests ?? 0;
  return (
    <span class="acts">
      <Act
        label="Limit"
        verb="updateKeyBudget"
        given={{ id: key.id }}
        fields={[
          { name: "team", label: "Team", kind: "choice", choices: teams, value: key.team?.name ?? "" },
          ...limitFields("limits", key.limits),
        ]}
        says="An empty field takes the limit away. It holds for the next request."
        done="The limits were changed."
        onDone={changed}
      />
      <Act
        label="Rotate"
        verb="rotateKey"
        given={{ id: key.id }}
        fields={[
          { name: "grace", label: "Grace of the old secret", kind: "text", value: "", hint: "Such as 1h or 7d" },
        ]}
        done="The key has a new secret."
        onDone={changed}
        result={(answer: { key: string | null }) => <Secret of={answer.key} />}
      />
      <Act
        label="Revoke"
        verb="revokeKey"
        given={{ id: key.id }}
        ends={{
          name: key.name,
          what: `Ends this key for good, within a second on every node${running > 0 ? `, and ${running} running requests with it` : ""}.`,
        }}
        done="The key was revoked."
        onDone={changed}
      />
    </span>
  );
}
