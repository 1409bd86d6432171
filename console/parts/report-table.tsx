/** The rows of a report. Each leads to the requests that it adds up, and the last line is their sum. */
import type { ComponentChildren } from "preact";
import { query } from "../core/address.ts";
import type { Answer } from "../core/client.ts";
import { grouped } from "../core/format.ts";
import { figureOf } from "../core/money.ts";
import { wayDown } from "../core/way-down.ts";
import { Bar, Money } from "./number.tsx";
import { Table } from "./table.tsx";

type Report = Answer<"reportUsage">;
type Row = Report["rows"][number];
const sums = ["requests", "input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens"] as const;

export function ReportTable({ report, by }: { report: Report; by: string }) {
  const { rows, from, to, total, rows_left_out: leftOut } = report;
  const isTime = by === "day" || by === "month";
  const ordered: Line[] = [...rows].sort((a, b) => (isTime ? (timeOf(a) < timeOf(b) ? 1 : -1) : costOf(b) - costOf(a)));
  const most = Math.max(1e-9, ...rows.map(costOf));
  if (leftOut > 0) ordered.push(restOf(report));
  return (
    <Table<Line>
      caption={`Usage by ${by}`}
      rows={ordered}
      keyOf={(row, at) => (row.others ? "others" : `${nameOf(row, by)} ${at}`)}
      columns={[
        {
          head: `${by[0]!.toUpperCase()}${by.slice(1)}`,
          cell: (row) => <Name row={row} by={by} from={from} to={to} />,
          foot: "Sum",
        },
        {
          head: "Share",
          cell: (row) =>
            row.others ? "" : <Bar used={costOf(row)} limit={most} label="Share of the largest" isPart />,
        },
        { head: "Requests", isNumber: true, cell: ({ requests }) => grouped(requests), foot: grouped(total.requests) },
        { head: "Input tokens", isNumber: true, cell: (row) => grouped(inputOf(row)), foot: grouped(inputOf(total)) },
        {
          head: "Output tokens",
          isNumber: true,
          cell: ({ output_tokens }) => grouped(output_tokens),
          foot: grouped(total.output_tokens),
        },
        {
          head: "Cost",
          isNumber: true,
          cell: ({ cost }) => <Money of={cost?.total} />,
          foot: <Money of={total.cost.total} />,
        },
        {
          head: "Extra",
          isNumber: true,
          cell: ({ cost }) => <Money of={cost?.extra_usage} />,
          foot: <Money of={total.cost.extra_usage} />,
        },
        {
          head: "Not charged",
          isNumber: true,
          cell: ({ cost }) => <Money of={cost?.uncharged} />,
          foot: <Money of={total.cost.uncharged} />,
        },
      ]}
    />
  );
}

/** A row, or all rows that are not shown as one. */
interface Line extends Summed {
  others?: number;
  cost?: Report["total"]["cost"];
}
type Summed = Pick<Row, (typeof sums)[number]> & Omit<Partial<Row>, (typeof sums)[number] | "cost">;

function restOf({ rows, total, rows_left_out: others }: Report): Line {
  const rest = sums.map((name) => [name, rows.reduce((left, row) => left - row[name], total[name])]);
  return { ...(Object.fromEntries(rest) as Summed), others };
}

const costOf = ({ cost }: Line) => (cost ? figureOf(cost.total) : 0);

const inputOf = (row: Pick<Row, (typeof sums)[number]>) =>
  row.input_tokens + row.cached_input_tokens + row.cache_write_tokens;
const timeOf = ({ day, month }: Line) => day ?? month ?? "";

function nameOf(row: Line, by: string): string | null {
  const value = (row as unknown as Record<string, unknown>)[by];
  return typeof value === "string" ? value : null;
}

/** The name, as the way down to what the row adds up. */
function Name({ row, by, from, to }: { row: Line; by: string; from: string; to: string }): ComponentChildren {
  if (row.others) return <span class="fine">{grouped(row.others)} others</span>;
  const name = nameOf(row, by);
  const id = by === "team" ? row.team_id : by === "person" ? row.person_id : by === "key" ? row.key_id : name;
  if (!id) return <span class="fine">{absent[by] ?? "none"}</span>;
  const href = wayDown(row, { by, organization: query.value.get("organization"), from, to });
  return href === null ? (name ?? id) : <a href={href}>{name ?? id}</a>;
}

const absent: Record<string, string> = {
  team: "no team",
  person: "nobody's keys",
  key: "an entry of an operator",
  model: "an entry of an operator",
};
