/** The invitations into an organization, and what became of each. */
import type { ItemOf } from "../core/client.ts";
import { valueFields } from "../core/limit-fields.ts";
import { days } from "../core/verb-table.ts" with { type: "macro" };
import { Act } from "./act.tsx";
import { ThingLink } from "./links.tsx";
import { List } from "./list.tsx";
import { Section, State } from "./section.tsx";
import { Table } from "./table.tsx";
import { Distance } from "./time.tsx";

type Invitation = ItemOf<"pageInvitations">;

const says = `They get the membership at their first sign-in at the issuer, within ${days("invitation")} days. Nothing is sent: tell them the address of this page.`;

export function Invitations({ organization }: { organization: string }) {
  const invite = (
    <Act
      label="Invite"
      verb="createInvitation"
      given={{ organization }}
      fields={[
        { name: "email", label: "E-mail address" },
        { name: "role", value: "member" },
        { name: "team" },
        { name: "issuer", hint: "Empty: the only one" },
        ...valueFields("limits", null),
      ]}
      says={says}
      done="They are invited."
    />
  );
  return (
    <Section title="Invitations" aside={invite}>
      <List verb="pageInvitations" input={{ organization }} cursor="invited" none="Nobody is invited.">
        {(all) => (
          <Table<Invitation>
            caption="Invitations"
            rows={all}
            keyOf={({ id }) => id}
            columns={[
              { head: "Address", cell: ({ email }) => email },
              { head: "Role", cell: ({ role }) => role },
              { head: "Team", isMinor: true, cell: ({ team }) => team ?? "–" },
              {
                head: "State",
                cell: ({ state }) => <State of={state === "open" ? "waiting" : state} words={state} />,
              },
              { head: "Expires", isMinor: true, cell: ({ expires_at }) => <Distance at={expires_at} /> },
              {
                head: "Taken by",
                cell: ({ person_id }) => (person_id ? <ThingLink kind="person" id={person_id} /> : "–"),
              },
              { head: "Actions", areActs: true, cell: (one) => <Revoke of={one} /> },
            ]}
          />
        )}
      </List>
    </Section>
  );
}

function Revoke({ of: { id, state, email } }: { of: Invitation }) {
  if (state !== "open") return null;
  return (
    <Act
      label="Revoke"
      verb="revokeInvitation"
      given={{ id }}
      says={`Nobody takes the invitation of ${email} any more.`}
      done="The invitation is revoked."
    />
  );
}
