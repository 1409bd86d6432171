/** Keys of an organization, and what can be done with them. */
import { type ComponentChildren, Fragment } from "preact";
import { useState } from "preact/hooks";
import type { ItemOf } from "../core/client.ts";
import type { Field, WrittenField } from "../core/form.ts";
import { shortId } from "../core/format.ts";
import { valueFields } from "../core/limit-fields.ts";
import { isMember } from "../core/session.ts";
import { Act } from "./act.tsx";
import { Block } from "./copy.tsx";
import { RequestsOf } from "./links.tsx";
import { List } from "./list.tsx";
import { Section, State } from "./section.tsx";
import { Table } from "./table.tsx";
import { Distance } from "./time.tsx";
import { Share } from "./windows.tsx";

type Key = ItemOf<"pageKeys">;
/** The names of the organization's teams; null: there are too many to choose of. */
type Teams = readonly string[] | null;

function teamField(teams: Teams): Field {
  const field = { name: "team", label: "Team" } as const;
  return teams === null ? { ...field, kind: "text", hint: "ID or name" } : { ...field, kind: "choice", choices: teams };
}

export function Keys({ organization, teams }: { organization: string; teams: Teams }) {
  return (
    <KeySection title="Keys" organization={organization} teams={teams}>
      <List verb="pageKeys" input={{ organization }} cursor="keys" none="No key yet. A client calls with one.">
        {(keys, reload) => (
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
              { head: "Last used", cell: ({ last_used_at }) => <Distance at={last_used_at} none="never" /> },
              { head: "Ends", cell: ({ ends_at }) => <Distance at={ends_at} none="never" /> },
              { head: "Acts", areActs: true, cell: (key) => <KeyActs of={key} teams={teams} changed={reload} /> },
            ]}
          />
        )}
      </List>
    </KeySection>
  );
}

/** A member's keys. A member sets neither team nor limits. */
export function OwnKeys({ organization }: { organization: string }) {
  return (
    <KeySection title="Your keys" organization={organization} teams={[]}>
      <List verb="pageKeys" input={{ organization }} cursor="keys" none="You have no key yet. A client calls with one.">
        {(keys, reload) => (
          <Table<Key>
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
              {
                head: "Acts",
                areActs: true,
                cell: (key) => key.state !== "revoked" && <KeyEnd of={key} changed={reload} />,
              },
            ]}
          />
        )}
      </List>
    </KeySection>
  );
}

function KeyId({ of: id }: { of: string }) {
  return (
    <code title={id} class="nowrap">
      {shortId(id)}
    </code>
  );
}

interface Of {
  organization: string;
  teams: Teams;
}

/** The act stands outside of the list, which begins anew with the new key: its secret stays until it was read. */
function KeySection({ title, children, ...of }: Of & { title: string; children: ComponentChildren }) {
  const [turn, setTurn] = useState(0);
  return (
    <Section title={title} aside={<CreateKey {...of} done={() => setTurn(turn + 1)} />}>
      <Fragment key={turn}>{children}</Fragment>
    </Section>
  );
}

function CreateKey({ organization, teams, done }: Of & { done: () => void }) {
  const expires: WrittenField = { name: "expires_at", label: "Expires" };
  const models: WrittenField = { name: "models" };
  const fields: WrittenField[] = [
    { name: "name", hint: "Who or what calls with it" },
    ...(isMember.value
      ? [
          { ...expires, isRequired: true },
          { ...models, hint: "With commas; empty: every model that you may use" },
        ]
      : [
          teamField(teams),
          { ...expires, hint: "Empty: as the organization's policy says" },
          { ...models, hint: "With commas; empty: every model" },
          ...valueFields("limits", null).filter(({ name }) => /week|month|concurrent/.test(name)),
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
  of: Pick<Key, "id" | "name" | "standing" | "secrets">;
  changed: () => void;
}

function KeyEnd({ of: key, changed }: Ending) {
  const running = key.standing?.running_requests ?? 0;
  return (
    <SecretActs
      kind="Key"
      of={key}
      ends={{
        old: "Ends the secrets that rotations replaced. The newest goes on.",
        all: `Ends this key for good, within a second on every node${running > 0 ? `, and ${running} running requests with it` : ""}.`,
      }}
      changed={changed}
    />
  );
}

interface SecretActsProps {
  kind: "Key" | "Operator";
  of: Pick<Key, "id" | "name" | "secrets">;
  /** The effect of ending the old secrets, and of ending all, in a sentence each. */
  ends: { old: string; all: string };
  changed: () => void;
}

/** Another secret, or none any more: of a key, or of an operator, whose secrets are tokens. */
export function SecretActs({ kind, of: { id, name, secrets }, ends, changed }: SecretActsProps) {
  const [thing, secret] = kind === "Key" ? ["key", "secret"] : ["operator", "token"];
  return (
    <span class="acts">
      <Act
        label="Rotate"
        verb={`rotate${kind}`}
        given={{ id }}
        fields={[
          {
            name: "grace",
            label: `Grace of the old ${secret}`,
            kind: "text",
            hint: "Such as 1h or 7d. Empty: 24h",
          },
        ]}
        done={`The ${thing} has a new ${secret}.`}
        onDone={changed}
        result={(answer: { key: string | null } | { token: string | null }) => (
          <Secret of={"key" in answer ? answer.key : answer.token} />
        )}
      />
      {hasOld(secrets) && (
        <Act
          label={`End old ${secret}s`}
          verb={`revoke${kind}`}
          given={{ id, old: true }}
          ends={{ name, what: ends.old }}
          done={`The old ${secret}s were revoked.`}
          onDone={changed}
        />
      )}
      <Act
        label="Revoke"
        verb={`revoke${kind}`}
        given={{ id }}
        ends={{ name, what: ends.all }}
        done={`The ${thing} was revoked.`}
        onDone={changed}
      />
    </span>
  );
}

function KeyActs({ of: key, teams, changed }: { of: Key; teams: Teams; changed: () => void }) {
  if (key.state === "revoked") return null;
  return (
    <span class="acts">
      <Act
        label="Team"
        verb="updateKey"
        given={{ id: key.id, version: key.version }}
        fields={[{ ...teamField(teams), value: key.team?.name ?? "" }]}
        says="The key then shares the team's limits. It holds for the next request."
        done="The key is in its team."
        onDone={changed}
      />
      <Act
        label="Change"
        verb="updateKey"
        given={{ id: key.id, version: key.version }}
        fields={[
          { name: "name", value: key.name },
          { name: "owner", value: key.owner, hint: "A person or a team, in any words" },
          { name: "models", value: key.models, hint: "Empty: every model" },
          { name: "scopes", value: key.scopes },
          {
            name: "allow_from",
            label: "Addresses and networks",
            value: key.allow_from,
            hint: "Such as 10.0.0.0/8; empty: all",
          },
          { name: "expires_at", label: "Expires", value: key.expires_at?.slice(0, 10) ?? "" },
        ]}
        says="Every node knows within a second. What runs goes on."
        done="The key was changed."
        onDone={changed}
      />
      <KeyEnd of={key} changed={changed} />
    </span>
  );
}

/** Whether an older secret than the newest still works. */
function hasOld(secrets: readonly { revoked_at: string | null; expires_at: string | null }[]): boolean {
  const isUsable = (at: string | null) => at === null || Date.parse(at) > Date.now();
  return secrets.slice(1).some(({ revoked_at, expires_at }) => revoked_at === null && isUsable(expires_at));
}
