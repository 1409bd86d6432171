/** One key: whose it is, what it used of its limits, its secrets and its requests. */
import type { Answer } from "../core/client.ts";
import { isMember } from "../core/session.ts";
import { useAnswer } from "../core/use-answer.ts";
import { SubjectSpend } from "../later.tsx";
import type { PageProps } from "../pages.ts";
import { Show } from "../parts/asked.tsx";
import { auditTab } from "../parts/audit-list.tsx";
import { CommandLine } from "../parts/command-line.tsx";
import { ChangeKey, KeyEnd, secretState } from "../parts/key-acts.tsx";
import { Owner, TeamOf } from "../parts/keys.tsx";
import { LimitsOf } from "../parts/limits.tsx";
import { OrganizationLink } from "../parts/links.tsx";
import { RequestList, requestsTab } from "../parts/request-list.tsx";
import { Facts, Page, Section, State } from "../parts/section.tsx";
import { Table } from "../parts/table.tsx";
import { Tabs } from "../parts/tabs.tsx";
import { Distance, Time } from "../parts/time.tsx";

type Key = Answer<"findKey">;
type Secret = Key["secrets"][number];

const requests_shown = 5;

export function KeyPage({ id, tab }: PageProps) {
  const asked = useAnswer("findKey", { id });
  const limits = useAnswer("findKeyLimits", { id });
  const found = asked.answer;
  const changed = () => [asked.reload(), limits.reload()];
  const requests = {
    input: { key: id },
    without: ["organization", "person", "key"],
    none: "Nothing was asked with this key yet.",
  } as const;
  return (
    <Page
      title={found?.name ?? "Key"}
      up={found && placeOf(found)}
      aside={
        found && (
          <span class="acts">
            <State of={found.state} />
            <ChangeKey of={found} changed={changed} />
            <KeyEnd of={found} changed={changed} />
          </span>
        )
      }
    >
      <Show of={asked}>
        {(key) => (
          <Tabs
            base={`/keys/${id}`}
            tab={tab}
            of={[
              {
                name: "Overview",
                path: "",
                shows: () => (
                  <>
                    <LimitsOf
                      title="Usage and limits"
                      of={limits}
                      version={key.version}
                      changed={asked.reload}
                      none="Nothing limits the key but what limits its team, its owner and its organization."
                    />
                    <SubjectSpend of={{ key: id }} />
                    <Section title="Details">
                      <Facts of={factsOf(key)} />
                    </Section>
                    {key.kind === "key" && (
                      <Section title="Secrets">
                        <Secrets of={key.secrets} />
                      </Section>
                    )}
                    <Section title="Last requests" aside={<a href={`/keys/${id}/requests`}>All</a>}>
                      <RequestList {...requests} limit={requests_shown} />
                    </Section>
                  </>
                ),
              },
              requestsTab(requests),
              auditTab(id),
            ]}
          />
        )}
      </Show>
      <CommandLine verb="findKey" input={{ id }} />
    </Page>
  );
}

/** The link from a key's page up to the list with the key. */
function placeOf({ organization }: Key) {
  if (isMember.value) return { href: "/you", name: "Your keys" };
  return { href: `/organizations/${organization}/keys`, name: `Keys of ${organization}` };
}

const kinds = { key: "key", "sign-in": "a device of a person", jwt: "an issuer's tokens" } as const;

function factsOf(key: Key) {
  const labels = Object.entries(key.labels).map(([name, text]) => `${name}=${text}`);
  return [
    ["owner", <Owner key="o" of={key} />],
    ["team", key.team ? <TeamOf key="t" of={key} /> : null],
    ["organization", <OrganizationLink key="g" slug={key.organization} />],
    ["kind", kinds[key.kind]],
    ["models", key.models?.join(", ") ?? "every model"],
    ["scopes", key.scopes.join(", ")],
    ["called from", key.allow_from?.join(", ") ?? "every address"],
    ["labels", labels.join(", ")],
    ["expires", <Distance key="e" at={key.ends_at} none="never" />],
    ["last used", <LastUse key="u" of={key} />],
    ["created", <Created key="c" of={key} />],
    ["id", <code key="i">{key.id}</code>],
  ] as const;
}

function LastUse({ of: { last_used_at, last_used_from } }: { of: Key }) {
  return (
    <>
      <Distance at={last_used_at} none="never" />
      {last_used_from && ` from ${last_used_from}`}
    </>
  );
}

function Created({ of: { created_at, created_by } }: { of: Key }) {
  return (
    <>
      <Time at={created_at} />
      {created_by && ` by ${created_by}`}
    </>
  );
}

function Secrets({ of }: { of: readonly Secret[] }) {
  return (
    <Table<Secret>
      caption="Secrets"
      rows={of}
      keyOf={({ created_at }) => created_at}
      columns={[
        {
          head: "Secret",
          cell: ({ prefix, suffix }) => (
            <code>
              {prefix}…{suffix}
            </code>
          ),
        },
        { head: "State", cell: (one) => <State of={secretState(one)} /> },
        { head: "Created", cell: ({ created_at }) => <Time at={created_at} /> },
        { head: "Ends", cell: ({ revoked_at, expires_at }) => <Distance at={revoked_at ?? expires_at} none="never" /> },
      ]}
    />
  );
}
