/** The list of the models, people or keys that cost most. */
import { figureOf, moneyWritten } from "../core/money.ts";
import { type Range, spanAsked } from "../core/range.ts";
import { idOf, nameOf, type Subject } from "../core/spend.ts";
import { useAnswer } from "../core/use-answer.ts";
import { Show } from "./asked.tsx";
import { Bar } from "./number.tsx";
import { Empty, Section } from "./section.tsx";
import type { Narrowed } from "./spend-chart.tsx";

const shown_max = 5;

interface Props {
  title: string;
  by: Subject;
  of: Narrowed;
  range: Range;
  linkOf: (by: Subject, id: string) => string;
}

export function TopList({ title, by, of, range, linkOf }: Props) {
  const asked = useAnswer("reportUsage", { ...of, by, largest: shown_max, ...spanAsked(range, [by]) });
  return (
    <Section title={title}>
      <Show of={asked}>
        {({ rows: all, total }) => {
          const rows = all.filter(({ cost }) => figureOf(cost.total) > 0);
          return rows.length === 0 ? (
            <Empty>Nothing was used in this period.</Empty>
          ) : (
            <ol class="top-list">
              {rows.map((row) => {
                const [id, name] = [idOf(row, by), nameOf(row, by)];
                return (
                  <li key={id ?? name}>
                    <span class="name">{id === null ? name : <a href={linkOf(by, id)}>{name}</a>}</span>
                    <span>{moneyWritten(row.cost.total)}</span>
                    <Bar
                      used={figureOf(row.cost.total)}
                      limit={Math.max(1e-9, figureOf(total.cost.total))}
                      label={`${name}, share of all`}
                      isPart
                    />
                  </li>
                );
              })}
            </ol>
          );
        }}
      </Show>
    </Section>
  );
}
