/** Operators with tokens: machines, and people without an issuer. */
import type { ItemOf } from "../core/client.ts";
import { Act } from "../parts/act.tsx";
import { CommandLine } from "../parts/command-line.tsx";
import { Secret, SecretActs, secretState } from "../parts/key-acts.tsx";
import { List } from "../parts/list.tsx";
import { Page, State } from "../parts/section.tsx";
import { Table } from "../parts/table.tsx";
import { Distance } from "../parts/time.tsx";

type Operator = ItemOf<"pageOperators">;

export function OperatorsPage() {
  return (
    <Page title="Operators" aside={<CreateOperator />}>
      <List
        verb="pageOperators"
        input={{}}
        none="No operator yet. An operator's token is for scripts and other machines."
      >
        {(rows) => (
          <Table<Operator>
            caption="Operators"
            rows={rows}
            keyOf={({ id }) => id}
            columns={[
              { head: "Name", cell: ({ name }) => name },
              { head: "Role", cell: ({ role }) => role },
              { head: "State", cell: (operator) => <State of={secretState(operator)} /> },
              { head: "Last used", cell: ({ last_used_at }) => <Distance at={last_used_at} none="never" /> },
              { head: "From", cell: ({ last_used_from }) => last_used_from ?? "–" },
              { head: "Expires", cell: ({ expires_at }) => <Distance at={expires_at} none="never" /> },
              { head: "Made by", cell: ({ created_by }) => created_by },
              { head: "Actions", areActs: true, cell: (operator) => <Acts of={operator} /> },
            ]}
          />
        )}
      </List>
      <CommandLine verb="pageOperators" />
    </Page>
  );
}

function CreateOperator() {
  return (
    <Act
      label="Create operator"
      verb="createOperator"
      fields={[
        { name: "name", hint: "For the audit log" },
        { name: "role", value: "viewer" },
        { name: "organization", hint: "Of an organization-admin" },
        { name: "expires_at", label: "Expires" },
      ]}
      isPrimary
      done="The operator was created."
      hasSecret
      result={({ token }: { token: string | null }) => <Secret of={token} />}
    />
  );
}

function Acts({ of: operator }: { of: Operator }) {
  if (operator.revoked_at !== null) return null;
  // Only the clock of the reader's machine, which may be wrong, says that a token has expired: it can still be revoked.
  return (
    <SecretActs
      kind="Operator"
      of={operator}
      canRotate={secretState(operator) === "active"}
      ends={{
        old: "Ends the tokens that a rotation replaced, and the sessions that began with them.",
        all: "Ends the token and the sessions that began with it, within a second on every node.",
      }}
    />
  );
}
