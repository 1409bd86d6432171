/** People who have signed in. */
import type { ItemOf } from "../core/client.ts";
import { ThingLink } from "./links.tsx";
import { List } from "./list.tsx";
import { State } from "./section.tsx";
import { Table } from "./table.tsx";
import { Distance } from "./time.tsx";

type Person = ItemOf<"pagePeople">;

interface Props {
  input: Record<string, string>;
  cursor?: string;
  none?: string | undefined;
}

const nobody = "Nobody has signed in yet. People come in by an issuer: docs/identity.md says how to name one.";

export function PeopleList({ input, cursor, none = nobody }: Props) {
  return (
    <List verb="pagePeople" input={input as never} cursor={cursor} none={none}>
      {(rows) => (
        <Table<Person>
          caption="People"
          rows={rows}
          keyOf={({ id }) => id}
          columns={[
            { head: "Name", cell: ({ id, name, email }) => <ThingLink kind="person" id={id} name={name ?? email} /> },
            { head: "E-mail", cell: ({ email }) => email ?? "–" },
            { head: "State", cell: ({ state }) => <State of={state} /> },
            { head: "Memberships", cell: ({ memberships }) => memberships.map(membershipWords).join("; ") || "none" },
            { head: "Last confirmed", isMinor: true, cell: ({ confirmed_at }) => <Distance at={confirmed_at} /> },
          ]}
        />
      )}
    </List>
  );
}

export function membershipWords({ role, organization, team }: Person["memberships"][number]): string {
  const name = (team as { name: string } | null)?.name;
  return `${role} of ${organization ?? "the service"}${name ? `, ${name}` : ""}`;
}
