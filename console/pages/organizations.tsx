/** Organizations, with how much of their limits they have used. */

import { go } from "../core/address.ts";
import type { ItemOf } from "../core/client.ts";
import { limitWords, type WrittenField } from "../core/form.ts";
import { figureOf } from "../core/money.ts";
import { may } from "../core/session.ts";
import { useAnswer } from "../core/use-answer.ts";
import { choicesOf } from "../core/verb-table.ts" with { type: "macro" };
import { Act } from "../parts/act.tsx";
import { CommandLine } from "../parts/command-line.tsx";
import { type Filter, Filters, filtersSet } from "../parts/filters.tsx";
import { OrganizationLink } from "../parts/links.tsx";
import { List } from "../parts/list.tsx";
import { Page, State } from "../parts/section.tsx";
import { Table } from "../parts/table.tsx";
import { Distance } from "../parts/time.tsx";
import { Share, windowKinds } from "../parts/windows.tsx";

type Organization = ItemOf<"pageOrganizations">;

const filters: readonly Filter[] = [
  { name: "status", label: "Status", choices: choicesOf("pageOrganizations", "status") },
  { name: "plan", label: "Plan" },
  { name: "over", label: "Used at least, %", hint: "80" },
];

export function OrganizationsPage() {
  const input = filtersSet(filters);
  return (
    <Page title="Organizations" aside={<CreateOrganization />}>
      <Filters of={filters} />
      <List
        verb="pageOrganizations"
        input={input as never}
        none={
          Object.keys(input).length > 0
            ? "No organization fits these filters."
            : "No organization yet. Create one with a plan; then give it teams and keys."
        }
      >
        {(rows) => (
          <Table<Organization>
            caption="Organizations"
            rows={rows}
            keyOf={({ id }) => id}
            columns={[
              { head: "Slug", cell: ({ slug }) => <OrganizationLink slug={slug} /> },
              { head: "Name", cell: ({ name }) => name },
              { head: "Status", cell: ({ status }) => <State of={status} /> },
              { head: "Plan", cell: ({ plan }) => plan ?? <span class="fine">none</span> },
              { head: "Used", cell: ({ standing }) => <Share of={standing} /> },
              { head: "Limit", cell: ({ standing }) => (standing ? fullest(standing) : "") },
              { head: "Running", isNumber: true, cell: ({ standing }) => standing?.running_requests ?? "–" },
              { head: "Created", cell: ({ created_at }) => <Distance at={created_at} /> },
            ]}
          />
        )}
      </List>
      <CommandLine verb="pageOrganizations" input={input} />
    </Page>
  );
}

function fullest(standing: NonNullable<Organization["standing"]>): string {
  const limited = windowKinds.filter((kind) => standing[kind].limit !== null);
  const share = (kind: (typeof windowKinds)[number]) => figureOf(standing[kind].used) / figureOf(standing[kind].limit!);
  const [most] = limited.sort((a, b) => share(b) - share(a));
  return most ? limitWords(most) : "";
}

function CreateOrganization() {
  const plans = useAnswer("listPlans", may("listPlans") && may("createOrganization") ? {} : null);
  const fields: WrittenField[] = [
    { name: "slug", hint: "Lowercase letters, digits and hyphens" },
    { name: "name" },
    { name: "plan", kind: "choice", choices: plans.answer?.data.map(({ name }) => name) ?? [] },
  ];
  return (
    <Act
      label="Create organization"
      verb="createOrganization"
      fields={fields}
      isPrimary
      done="The organization was created."
      result={({ slug }: { slug: string }) => {
        go(`/organizations/${slug}`);
        return <p class="told">{slug} is there.</p>;
      }}
    />
  );
}
