/** Keys of an organization, and what can be done with them. */
import type { ItemOf } from "../core/client.ts";
import type { Field } from "../core/form.ts";
import { limitFields } from "../core/form.ts";
import { shortId } from "../core/format.ts";
import { isMember } from "../core/session.ts";
import { Act } from "./act.tsx";
import { Block } from "./copy.tsx";
import { RequestsOf } from "./links.tsx";
import { List } from "./list.tsx";
import { RaiseActs, RaisedLimits } from "./raise.tsx";
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
      none={<p>No key yet. A client calls with one. {<CreateKey organization={organization} teams={teams} />}</p>}
    >
      {(keys, reload) => (
        <Section title="Keys" aside={<CreateKey organization={organization} teams={teams} done={reload} />}>
          <Table<Key>
            caption="Keys"
            rows={keys}
            keyOf={({ id }) => id}
            columns={[
              { head: "Name", cell: ({ name, id }) => <RequestsOf by="key" id={id} words={name} /> },
              { head: "ID", cell: ({ id }) => <KeyId of={id} /> },
              { head: "State", cell: ({ state }) => <State of={state} /> },
              { head: "Team", cell: ({ team }) => team?.name ?? "–" },
              { head: "Used", cell: ({ standing }) => <Share of={standing} /> },
              { head: "Limits", cell: ({ limits, raise }) => <RaisedLimits of={limits} raise={raise} /> },
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

type OwnKey = ItemOf<"pageKeys">;

/** A member's keys: she sets neither their team nor limits. */
export function OwnKeys({ organization }: { organization: string }) {
  return (
    <List
      verb="pageKeys"
      input={{ organization }}
      cursor="keys"
      none={<p>You have no key yet. A client calls with one. {<CreateKey organization={organization} teams={[]} />}</p>}
    >
      {(keys, reload) => (
        <Section title="Your keys" aside={<CreateKey organization={organization} teams={[]} done={reload} />}>
          <Table<OwnKey>
            caption="Your keys"
            rows={keys}
            keyOf={({ id }) => id}
            columns={[
              { head: "Name", cell: ({ name, id }) => <RequestsOf by="key" id={id} words={name} /> },
              { head: "ID", cell: ({ id }) => <KeyId of={id} /> },
              { head: "State", cell: ({ state }) => <State of={state} /> },
              { head: "Used", cell: ({ standing }) => <Share of={standing} /> },
              { head: "Last used", cell: ({ last_used_at }) => <Distance at={last_used_at} none="never" /> },
              { head: "Ends", cell: ({ ends_at }) => <Distance at={ends_at} none="never" /> },
              { head: "Acts", cell: (key) => key.state !== "revoked" && <KeyEnd of={key} changed={reload} /> },
            ]}
          />
        </Section>
      )}
    </List>
  );
}

function KeyId({ of: id }: { of: string }) {
  return (
    <code title={id} class="nowrap">
      {shortId(id)}
    </code>
  );
}

interface Made {
  organization: string;
  teams: readonly string[];
  done?: () => void;
}

export function CreateKey({ organization, teams, done = () => {} }: Made) {
  const expires: Field = { name: "expires", label: "Expires", kind: "day" };
  const models: Field = { name: "models", label: "Models", kind: "list" };
  const fields: Field[] = [
    { name: "name", label: "Name", kind: "text", isRequired: true, hint: "Who or what calls with it" },
    ...(isMember.value
      ? [
          { ...expires, isRequired: true },
          { ...models, hint: "With commas; empty: every model that you may use" },
        ]
      : [
          { name: "team", label: "Team", kind: "choice", choices: teams } as const,
          { ...expires, hint: "Empty: as the organization's policy says" },
          { ...models, hint: "With commas; empty: every model" },
          ...limitFields("limits", null).filter(({ name }) => /week|month|concurrent/.test(name)),
        ]),
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

interface Ending {
  of: Pick<Key, "id" | "name" | "standing">;
  changed: () => void;
}

/** Another secret, or none any more. */
function KeyEnd({ of: { id, name, standing }, changed }: Ending) {
  const running = standing?.running_requests ?? 0;
  return (
    <span class="acts">
      <Act
        label="Rotate"
        verb="rotateKey"
        given={{ id }}
        fields={[
          {
            name: "grace",
            label: "Grace of the old secret",
            kind: "text",
            hint: "Such as 1h or 7d. Empty: it works until you revoke it",
          },
        ]}
        done="The key has a new secret."
        onDone={changed}
        result={(answer: { key: string | null }) => <Secret of={answer.key} />}
      />
      <Act
        label="Revoke"
        verb="revokeKey"
        given={{ id }}
        ends={{
          name,
          what: `Ends this key for good, within a second on every node${running > 0 ? `, and ${running} running requests with it` : ""}.`,
        }}
        done="The key was revoked."
        onDone={changed}
      />
    </span>
  );
}

function KeyActs({ of: key, teams, changed }: { of: Key; teams: readonly string[]; changed: () => void }) {
  if (key.state === "revoked") return null;
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
      <RaiseActs verb="raiseKey" given={{ id: key.id }} raise={key.raise} limits={key.limits} changed={changed} />
      <KeyEnd of={key} changed={changed} />
    </span>
  );
}
