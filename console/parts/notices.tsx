/**
 * The destinations of notices: those of one organization, or all, including those of the operators, who get the notices
 * of the fleet.
 */

import type { ItemOf } from "../core/client.ts";
import { choicesOf } from "../core/verb-table.ts" with { type: "macro" };
import { Act } from "./act.tsx";
import { CommandLine } from "./command-line.tsx";
import { Secret } from "./key-acts.tsx";
import { List } from "./list.tsx";
import { Section } from "./section.tsx";
import { Table } from "./table.tsx";
import { Distance } from "./time.tsx";

type Destination = ItemOf<"pageNotices">;

export function OrganizationNotices({ organization }: { organization: string }) {
  return (
    <Section title="Notices" aside={<AddDestination organization={organization} />}>
      <Destinations organization={organization} />
    </Section>
  );
}

interface OfOrganization {
  /** The organization's slug; null: all destinations are listed, and a new one gets the notices of the fleet. */
  organization: string | null;
}

export function Destinations({ organization }: OfOrganization) {
  const input = organization === null ? {} : { organization };
  return (
    <>
      <List verb="pageNotices" input={input} none={none(organization)}>
        {(rows) => (
          <Table<Destination>
            caption="Where notices are sent"
            rows={rows}
            keyOf={({ id }) => id}
            columns={[
              organization === null && { head: "Of", cell: (one) => <Whose of={one} /> },
              { head: "Name", cell: ({ name }) => name },
              { head: "Form", cell: ({ form }) => formNames[form] },
              { head: "To", cell: (one) => <To of={one} /> },
              { head: "Limits", cell: (one) => one.organization && one.shares.map((share) => `${share} %`).join(", ") },
              { head: "Keys", cell: (one) => one.organization && keyWords(one.key_expiry_days) },
              { head: "Waiting", isNumber: true, cell: ({ waiting }) => waiting },
              { head: "Problem", cell: ({ problem }) => problem ?? "none" },
              { head: "Changed", isMinor: true, cell: ({ changed_at }) => <Distance at={changed_at} /> },
              { head: "Actions", areActs: true, cell: (one) => <Acts of={one} /> },
            ]}
          />
        )}
      </List>
      <CommandLine verb="pageNotices" input={input} />
    </>
  );
}

const formNames: Record<Destination["form"], string> = {
  json: "signed JSON",
  slack: "Slack",
  teams: "Teams",
  mail: "mail",
};

function To({ of: { url, host, unsubscribed } }: { of: Destination }) {
  if (unsubscribed.length === 0) return <>{url ?? host}</>;
  return (
    <>
      {host} <span class="fine">(unsubscribed: {unsubscribed.join(", ")})</span>
    </>
  );
}

function none(organization: string | null): string {
  return organization === null
    ? "No notices are sent anywhere. Add a channel that hears of engines, nodes and certificates."
    : "No notices are sent. Add a channel that hears when a limit is near or reached, and when a key expires.";
}

function Whose({ of: { organization } }: { of: Destination }) {
  return organization === null ? "the fleet" : <a href={`/organizations/${organization}/notices`}>{organization}</a>;
}

const keyWords = (days: number) => (days === 0 ? "no notice" : `${days} days before`);

export function AddDestination({ organization }: OfOrganization) {
  const given = organization === null ? {} : { organization };
  const name = { name: "name", hint: "Such as alerts", isRequired: true } as const;
  const forms = choicesOf("setNotices", "form").filter((form) => form !== "mail");
  return (
    <span class="acts">
      <Act
        label="Add mail"
        verb="setNotices"
        given={{ ...given, form: "mail" }}
        says="Each address gets a mail of its own, with a link that unsubscribes."
        fields={[name, { name: "to", label: "Addresses", hint: "With commas between them", isRequired: true }]}
        done="The destination was added."
        result={Added}
      />
      <Act
        label="Add a destination"
        verb="setNotices"
        given={given}
        says="Slack: the URL of an incoming webhook. Teams: the URL of a workflow that posts what a webhook gets. They are stored encrypted and not shown again."
        fields={[
          name,
          {
            name: "form",
            isRequired: true,
            value: "slack",
            choices: forms.map((form) => [form, formNames[form as Destination["form"]]]),
          },
          { name: "url", label: "URL", isRequired: true },
        ]}
        isPrimary
        done="The destination was added."
        hasSecret
        result={Added}
      />
    </span>
  );
}

/** The result of adding a destination. A destination for signed JSON has a secret, which can be read only now. */
function Added({ secret, host }: { secret: string | null; host: string }) {
  if (secret !== null) return <Secret of={secret} />;
  return <p class="told">Notices go to {host}. Send a test to see whether they arrive.</p>;
}

function Acts({ of: one }: { of: Destination }) {
  const given = { name: one.name, organization: one.organization };
  return (
    <span class="acts">
      <Act
        label="Send a test"
        verb="testNotices"
        given={{ ...given, wait_s: 15 }}
        says={`A message to ${one.host}. It arrives within some seconds.`}
        done="The test was sent."
        result={Tested}
      />
      <Act
        label="Change"
        verb="setNotices"
        given={given}
        fields={[
          one.to === null
            ? { name: "url", label: "URL", value: one.url, hint: one.url === null ? "Empty: it stays" : "" }
            : { name: "to", label: "Addresses", value: one.to, hint: "With commas between them" },
          { name: "shares", label: "Notices of limits at", value: one.shares.map(String), hint: "Percentages" },
          { name: "key_expiry_days", label: "Days before a key expires", value: one.key_expiry_days },
        ]}
        sends={({ shares, ...rest }) => ({ ...rest, ...(Array.isArray(shares) && { shares: shares.map(Number) }) })}
        done="The destination was changed."
      />
      <Act
        label="Remove"
        verb="removeNotices"
        given={given}
        ends={{ name: one.name, what: removal(one.waiting) }}
        done="The destination was removed."
      />
    </span>
  );
}

function Tested({
  is_delivered,
  test_problem,
  host,
}: {
  is_delivered: boolean;
  test_problem: string | null;
  host: string;
}) {
  if (is_delivered) return <p class="told">It arrived at {host}.</p>;
  return <p class="failed">{test_problem === null ? "It was not sent yet." : `It did not arrive: ${test_problem}.`}</p>;
}

/** Says in words what is lost when a destination is removed. */
function removal(waiting: number): string {
  const dropped =
    waiting === 0
      ? ""
      : ` ${waiting} that ${waiting === 1 ? "waits" : "wait"} to be sent ${waiting === 1 ? "is" : "are"} dropped.`;
  return `No more notices there.${dropped}`;
}
