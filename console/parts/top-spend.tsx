/** The people or models that cost most this month, with a link to the whole report. */
import { useState } from "preact/hooks";
import type { Answer } from "../core/client.ts";
import { grouped } from "../core/format.ts";
import { figureOf } from "../core/money.ts";
import { spanAsked } from "../core/range.ts";
import { may } from "../core/session.ts";
import { useAnswer } from "../core/use-answer.ts";
import { Show } from "./asked.tsx";
import { ThingLink } from "./links.tsx";
import { ModelLink } from "./model-table.tsx";
import { Bar, Money } from "./number.tsx";
import { readersMonth } from "./range-picker.tsx";
import { Empty, Section } from "./section.tsx";
import { Table } from "./table.tsx";

type Row = Answer<"reportUsage">["rows"][number];

const rows_max = 5;

interface Props {
  title: string;
  organization: string;
  by: keyof typeof names;
}

export function TopSpend({ title, organization, by }: Props) {
  const [now_ms] = useState(Date.now);
  const wanted = { organization, by, largest: rows_max, ...spanAsked(readersMonth(now_ms), [by]) };
  const asked = useAnswer("reportUsage", may("reportUsage") ? wanted : null);
  const { head, cell } = names[by];
  if (!may("reportUsage")) return null;
  return (
    <Section title={title} aside={<a href={`/usage?${new URLSearchParams({ organization, by })}`}>All</a>}>
      <Show of={asked}>
        {({ rows, total }) =>
          rows.length === 0 ? (
            <Empty>Nothing was used this month. A request counts when it has ended.</Empty>
          ) : (
            <Table<Row>
              caption={title}
              rows={rows}
              keyOf={(_, at) => String(at)}
              columns={[
                { head, cell },
                {
                  head: "Share",
                  cell: ({ cost }) => (
                    <Bar used={figureOf(cost.total)} limit={figureOf(total.cost.total)} label="Share of all" isPart />
                  ),
                },
                { head: "Requests", isNumber: true, isMinor: true, cell: ({ requests }) => grouped(requests) },
                { head: "Cost", isNumber: true, cell: ({ cost }) => <Money of={cost.total} /> },
              ]}
            />
          )
        }
      </Show>
    </Section>
  );
}

const none = (words: string) => <span class="fine">{words}</span>;

const names = {
  person: {
    head: "Person",
    cell: ({ person_id, person }: Row) =>
      person_id ? <ThingLink kind="person" id={person_id} name={person} /> : none("service keys"),
  },
  model: { head: "Model", cell: ({ model }: Row) => (model ? <ModelLink id={model} /> : none("adjustments")) },
};
