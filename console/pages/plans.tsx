/** The page Plans, and the page of one plan: the plan's limits now, and the history of their changes. */
import { go } from "../core/address.ts";
import type { ItemOf } from "../core/client.ts";
import { type LimitName, limitFields, limitNames, limitWords } from "../core/form.ts";
import { compacted, grouped } from "../core/format.ts";
import type { Money as Amount } from "../core/money.ts";
import { useAnswer } from "../core/use-answer.ts";
import type { PageProps } from "../pages.ts";
import { Act } from "../parts/act.tsx";
import { Show } from "../parts/asked.tsx";
import { Actor, detailsOf, type Entry } from "../parts/audit-list.tsx";
import { CommandLine } from "../parts/command-line.tsx";
import { List } from "../parts/list.tsx";
import { Money } from "../parts/number.tsx";
import { Empty, Facts, Page, Section } from "../parts/section.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";

type Plan = ItemOf<"listPlans">;

function limitOf(limit: Amount | number | null) {
  if (limit === null) return <span class="fine">none</span>;
  return typeof limit === "number" ? <span title={grouped(limit)}>{compacted(limit)}</span> : <Money of={limit} />;
}

const headOf = (limit: LimitName) => limitWords(limit).replace(/^./, (letter) => letter.toUpperCase());

export function PlansPage() {
  const asked = useAnswer("listPlans", {});
  return (
    <Page
      title="Plans"
      aside={
        <Act
          label="Create plan"
          verb="createPlan"
          fields={[{ name: "name" }, ...limitFields(null)]}
          isPrimary
          done="The plan was created."
          onDone={asked.reload}
        />
      }
    >
      <Show of={asked}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty>No plan yet. A plan has the limits of the organizations on it.</Empty>
          ) : (
            <Table<Plan>
              caption="Plans"
              rows={data}
              keyOf={({ name }) => name}
              columns={[
                { head: "Plan", cell: ({ name }) => <a href={`/plans/${encodeURIComponent(name)}`}>{name}</a> },
                ...limitNames.map((limit) => ({
                  head: headOf(limit),
                  isNumber: true,
                  cell: (plan: Plan) => limitOf(plan[limit]),
                })),
                { head: "From", cell: ({ source }) => (source === "file" ? "sluice.yaml" : "management") },
              ]}
            />
          )
        }
      </Show>
      <CommandLine verb="listPlans" />
    </Page>
  );
}

export function PlanPage({ id }: PageProps) {
  const asked = useAnswer("findPlan", { name: id });
  return (
    <Page
      title={id}
      aside={
        asked.answer?.source === "management" && (
          <>
            <Act
              label="Change limits"
              verb="updatePlan"
              given={{ name: id, version: asked.answer.version }}
              fields={limitFields(asked.answer)}
              says="It holds for every organization on the plan within a second."
              done="The plan was changed."
              onDone={asked.reload}
            />
            <Act
              label="Remove"
              verb="removePlan"
              given={{ name: id, version: asked.answer.version }}
              ends={{ name: id, what: "Removes the plan. It is refused while an organization is on it." }}
              done="The plan was removed."
              onDone={() => go("/plans")}
            />
          </>
        )
      }
    >
      <Show of={asked}>
        {(plan) => (
          <>
            <Facts
              of={[
                ...limitNames.map((name) => [limitWords(name), limitOf(plan[name])] as const),
                ["comes from", plan.source === "file" ? "sluice.yaml: change it there" : "management"],
                ["in force since", <Time key="c" at={plan.changed_at} />],
              ]}
            />
            <p class="sum">
              <a href={`/organizations?plan=${encodeURIComponent(id)}`}>Organizations on this plan</a>
            </p>
          </>
        )}
      </Show>
      <Section title="History">
        <List verb="planHistory" input={{ name: id }} none="It was never changed.">
          {(rows) => (
            <Table
              caption="History of the plan"
              rows={rows}
              keyOf={({ number }) => String(number)}
              columns={historyColumns}
            />
          )}
        </List>
      </Section>
      <CommandLine verb="findPlan" input={{ name: id }} />
    </Page>
  );
}

const historyColumns: Column<Entry>[] = [
  { head: "When", cell: ({ at }) => <Time at={at} /> },
  { head: "Who", cell: (entry) => <Actor of={entry} /> },
  { head: "Action", cell: ({ action }) => action },
  { head: "Details", cell: (entry) => <span class="anywhere">{detailsOf(entry)}</span> },
];
