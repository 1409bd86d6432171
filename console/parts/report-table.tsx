/** The rows of a report. Each leads to the requests that it adds up, and the last line is their sum. */
import type { ComponentChildren } from "preact";
import { query, withQuery } from "../core/address.ts";
import { grouped } from "../core/format.ts";
import { type Money as Amount, exactly, figureOf, moneyOf, nanosOf } from "../core/money.ts";
import { changeWords, idOf, nameOf, type Report, type Row, type Subject } from "../core/spend.ts";
import { wayDown } from "../core/way-down.ts";
import type { Zone } from "../core/zone.ts";
import { Bar, Money } from "./number.tsx";
import { type Column, Table } from "./table.tsx";

const counts = ["requests", "input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens"] as const;
const times: readonly string[] = ["day", "month"];

interface Props {
  report: Report;
  by: string;
  zone: Zone;
  /** The most rows that are shown; one line below them adds up all other rows. */
  rows_max: number;
  /** The same report for the period before, up to the same point in time; null: it is not known. */
  before: Report | null;
}

export function ReportTable({ report, by, zone, rows_max, before }: Props) {
  const { rows, total } = report;
  const isTime = times.includes(by);
  const ordered = [...rows].sort((a, b) => (isTime ? (timeOf(a) < timeOf(b) ? 1 : -1) : costOf(b) - costOf(a)));
  const listed = ordered.slice(0, rows_max);
  const leftOut = leftOutOf(report, rows_max);
  const most = Math.max(1e-9, ...listed.map(costOf));
  const lines: Line[] = leftOut > 0 ? [...listed, restOf(report, listed)] : listed;
  const costs = costsBefore(before, by, listed);
  const hasBefore = before !== null && !isTime && before.rows_left_out === 0 && isSome(before.total.cost.total);
  return (
    <Table<Line>
      caption={`Usage by ${by}`}
      rows={lines}
      keyOf={(row, at) => (row.others ? "others" : `${keyOf(row, by)} ${at}`)}
      isLast={(row) => row.others === true}
      isDense
      columns={[
        {
          head: `${by[0]!.toUpperCase()}${by.slice(1)}`,
          cell: (row) => <Name row={row} by={by} zone={zone} report={report} leftOut={leftOut} />,
          order: (row) => (isTime ? timeOf(row) : nameOf(row, by as Subject).toLowerCase()),
          foot: "Sum",
        },
        {
          head: "Share",
          cell: (row) =>
            row.others ? "" : <Bar used={costOf(row)} limit={most} label="Share of the largest" isPart />,
        },
        countColumn("Requests", ({ requests }) => requests, total),
        { ...countColumn("Input tokens", inputOf, total), isMinor: true },
        { ...countColumn("Output tokens", ({ output_tokens }) => output_tokens, total), isMinor: true },
        moneyColumn("Cost", ({ cost }) => cost.total, total),
        hasBefore && {
          head: "Change",
          isNumber: true,
          cell: (row) => <Change now={row.cost.total} before={costs(row)} />,
          order: (row) => nanosOf(row.cost.total) - nanosOf(costs(row) ?? { amount: "0" }),
          foot: <Change now={total.cost.total} before={before.total.cost.total} />,
        },
        isSome(total.cost.extra_usage) && moneyColumn("Extra usage", ({ cost }) => cost.extra_usage, total),
        isSome(total.cost.uncharged) && moneyColumn("Uncharged", ({ cost }) => cost.uncharged, total),
        narrowings.includes(by) && {
          head: "Chart",
          isMinor: true,
          cell: (row) => <Only row={row} by={by as Subject} />,
        },
      ]}
    />
  );
}

type Measured = Pick<Row, (typeof counts)[number] | "cost">;
/** One row, or the sum of all rows that are not shown. */
type Line = Measured & Partial<Row>;

function countColumn(head: string, of: (row: Measured) => number, total: Measured): Column<Line> {
  return { head, isNumber: true, cell: (row) => grouped(of(row)), order: of, foot: grouped(of(total)) };
}

function moneyColumn(head: string, of: (row: Measured) => Amount, total: Measured): Column<Line> {
  return {
    head,
    isNumber: true,
    cell: (row) => <Money of={of(row)} />,
    order: (row) => nanosOf(of(row)),
    foot: <Money of={of(total)} />,
  };
}

const isSome = (money: Amount) => nanosOf(money) !== 0n;

function Change({ now, before }: { now: Amount; before: Amount | undefined }) {
  if (!before) return <span class="fine">new</span>;
  const words = changeWords(nanosOf(now), nanosOf(before)) ?? "–";
  return <span title={`${exactly(before)} in the period before`}>{words}</span>;
}

/** The cost of each line in the period before; for the line of others, the cost of all rows that are not shown. */
function costsBefore(before: Report | null, by: string, listed: readonly Row[]) {
  const costs = new Map(before?.rows.map((row) => [keyOf(row, by), row.cost.total]));
  const ofListed = listed.flatMap((row) => costs.get(keyOf(row, by)) ?? []);
  const rest = before && ofListed.reduce((left, cost) => left - nanosOf(cost), nanosOf(before.total.cost.total));
  const others = before && moneyOf(rest!, before.currency);
  return (row: Line) => (row.others ? (others ?? undefined) : costs.get(keyOf(row, by)));
}

/** How many rows are not shown: those that only the report's total includes, and those beyond the first ones. */
export const leftOutOf = ({ rows, rows_left_out }: Report, rows_max: number) =>
  rows_left_out + Math.max(0, rows.length - rows_max);

/** The sum of all rows less the rows that are shown. */
function restOf({ total, currency }: Report, rows: readonly Row[]): Line {
  const rest = Object.fromEntries(
    counts.map((name) => [name, rows.reduce((sum, row) => sum - row[name], total[name])]),
  );
  const costs = Object.keys(total.cost).map((name) => {
    const of = (row: Measured) => nanosOf(row.cost[name as keyof Row["cost"]]);
    return [
      name,
      moneyOf(
        rows.reduce((sum, row) => sum - of(row), of(total)),
        currency,
      ),
    ];
  });
  return { ...(rest as Omit<Measured, "cost">), cost: Object.fromEntries(costs) as Row["cost"], others: true };
}

const costOf = ({ cost }: Measured) => figureOf(cost.total);
const inputOf = (row: Measured) => row.input_tokens + row.cached_input_tokens + row.cache_write_tokens;
const timeOf = ({ day, month }: Partial<Row>) => day ?? month ?? "";
const keyOf = (row: Partial<Row>, by: string) => (times.includes(by) ? timeOf(row) : (idOf(row, by as Subject) ?? ""));

interface Named {
  row: Line;
  by: string;
  zone: Zone;
  report: Report;
  leftOut: number;
}

/** The name of a row, linked to the requests that the row adds up. */
function Name({ row, by, zone, report: { from, to }, leftOut }: Named): ComponentChildren {
  if (row.others) return <span class="fine">{grouped(leftOut)} others</span>;
  const isTime = times.includes(by);
  const name = isTime ? timeOf(row) : nameOf(row, by as Subject);
  const id = isTime ? timeOf(row) : idOf(row, by as Subject);
  if (!id) return <span class="fine">{name}</span>;
  const filters = Object.fromEntries(narrowings.map((one) => [one, query.value.get(one)]));
  const href = wayDown(row, { by, filters, from, to, zone });
  return href === null ? name : <a href={href}>{name}</a>;
}

/** A link to the same page, filtered by this row. */
function Only({ row, by }: { row: Line; by: Subject }) {
  const id = row.others ? null : idOf(row, by);
  if (id === null) return null;
  return (
    <a href={onlyAddress(by, id)}>
      only<span class="hidden"> {nameOf(row, by)}</span>
    </a>
  );
}

/**
 * The address of the page filtered by one row. For one model, rows are then grouped as usual; for anything else, by
 * model.
 */
export function onlyAddress(by: Subject, id: string): string {
  return withQuery({ [by]: id, by: by === "model" ? null : "model", sort: null, rows: null });
}

/** The filters of a report. */
const narrowings: readonly string[] = ["organization", "team", "person", "key", "model"];
