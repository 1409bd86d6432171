/** Keys of an organization, of a team or of a person. */
import type { ItemOf } from "../core/client.ts";
import { isMember, session } from "../core/session.ts";
import { CreateKey, KeyEnd } from "./key-acts.tsx";
import { OrganizationLink, ThingLink } from "./links.tsx";
import { List } from "./list.tsx";
import { Section, State } from "./section.tsx";
import { Table } from "./table.tsx";
import { Distance } from "./time.tsx";
import { Share } from "./windows.tsx";

type Key = ItemOf<"pageKeys">;

interface Props {
  organization: string;
  title?: string;
  /** Shows only the keys of a team, or of a person. */
  of?: { team?: string; person?: string };
}

export function Keys({ organization, title = "Keys", of = {} }: Props) {
  return (
    <Section title={title} aside={<CreateKey organization={organization} given={of} />}>
      <KeyList caption={title} input={{ organization, ...of }} cursor={`keys-${organization}`} />
    </Section>
  );
}

interface Listed {
  caption: string;
  input: Record<string, string>;
  cursor?: string;
  /** Whether the rows may be of several organizations. */
  hasOrganizations?: boolean;
  none?: string | undefined;
}

const noKey = "No key yet. A client calls with one.";

export function KeyList({ caption, input, cursor, hasOrganizations = false, none = noKey }: Listed) {
  return (
    <List verb="pageKeys" input={input as never} cursor={cursor} none={none}>
      {(keys) => (
        <Table<Key>
          caption={caption}
          rows={keys}
          keyOf={({ id }) => id}
          columns={[
            { head: "Name", cell: ({ name, id }) => <ThingLink kind="key" id={id} name={name} /> },
            hasOrganizations && {
              head: "Organization",
              isMinor: true,
              cell: ({ organization }) => <OrganizationLink slug={organization} />,
            },
            !input.person && { head: "Owner", cell: (key) => <Owner of={key} /> },
            { head: "State", cell: ({ state }) => <State of={state} /> },
            !input.team && !isMember.value && { head: "Team", isMinor: true, cell: (key) => <TeamOf of={key} /> },
            { head: "Used", cell: ({ standing }) => <Share of={standing} /> },
            { head: "Last used", cell: ({ last_used_at }) => <Distance at={last_used_at} none="never" /> },
            { head: "Expires", isMinor: true, cell: ({ ends_at }) => <Distance at={ends_at} none="never" /> },
            { head: "Actions", areActs: true, cell: (key) => <KeyEnd of={key} /> },
          ]}
        />
      )}
    </List>
  );
}

/** The owner of a key: its person, otherwise the owner in words, otherwise `service key`, because nobody owns it. */
export function Owner({ of: { person_id, person, owner } }: { of: Pick<Key, "person_id" | "person" | "owner"> }) {
  if (person_id) return <ThingLink kind="person" id={person_id} name={person} />;
  return <span class={owner === null ? "fine" : undefined}>{owner ?? "service key"}</span>;
}

export function TeamOf({ of: { team } }: { of: Pick<Key, "team"> }) {
  return team ? <ThingLink kind="team" id={team.id} name={team.name} /> : <>–</>;
}

export function OwnKeys({ organization }: { organization: string }) {
  const { id } = session.value ?? {};
  return <Keys title="Your keys" organization={organization} of={id === undefined ? {} : { person: id }} />;
}

/** The devices on which a person has signed in. Each is a key, too, which ends with the sign-in. */
export function SignIns({ organization, person }: { organization: string; person: string }) {
  return (
    <Section title="Signed-in devices">
      <List
        verb="pageKeys"
        input={{ organization, person, kind: "sign-in" }}
        cursor={`devices-${organization}`}
        none="No device is signed in. On a device: sluice login."
      >
        {(keys) => (
          <Table<Key>
            caption="Signed-in devices"
            rows={keys}
            keyOf={({ id }) => id}
            columns={[
              { head: "Device", cell: ({ name, id }) => <ThingLink kind="key" id={id} name={name} /> },
              { head: "State", cell: ({ state }) => <State of={state} /> },
              { head: "Last used", cell: ({ last_used_at }) => <Distance at={last_used_at} none="never" /> },
              { head: "Actions", areActs: true, cell: (key) => <KeyEnd of={key} /> },
            ]}
          />
        )}
      </List>
    </Section>
  );
}
