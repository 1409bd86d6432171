// Writes the tables of a run in Markdown.

import type { Range, Report, Row } from "./run.ts";

export function printed({ host, stores, options, rows }: Report): string {
  const { clients, streamed, rounds, turn_ms } = options;
  const how = `${clients} clients, ${streamed ? "streamed" : "whole"} answers, ${rounds} rounds of ${turn_ms / 1000} s`;
  return [`${host}. ${stores}. ${how}.`, "", checksTable(rows), "", costTable(rows), ""].join("\n");
}

/** The table of the checks, with the first row of each gateway that has results of checks. */
export function checksTable(rows: readonly Row[]): string {
  const first = new Map<string, Row>();
  for (const row of rows) if (row.checks && !first.has(row.gateway)) first.set(row.gateway, row);
  const lines = [...first.values()].map(({ gateway, version, checks }) => {
    const { key, budget, race, rate } = checks!;
    return [`${gateway} ${version}`, key, budget, race, rate];
  });
  return table(["gateway", "wrong key", "budget, one after the other", "budget, 50 at once", "rate"], lines);
}

export function costTable(rows: readonly Row[]): string {
  const columns = [
    "keys",
    "gateway",
    "CPU, µs",
    "stores, µs",
    "in all, µs",
    "added, p50 ms",
    "p99 ms",
    "failed",
    "booked",
    "when, load",
  ];
  return table(columns, rows.map(costCells));
}

export function costCells(row: Row): string[] {
  const name = [`${row.keys}`, row.gateway];
  if (row.reason || !row.gateway_us)
    return [...name, row.reason?.split("\n")[0] ?? "", "", "", "", "", "", "", when(row)];
  return [
    ...name,
    ...[range(row.gateway_us, 0), range(row.stores_us!, 0), row.in_all_us!.toFixed(0)],
    ...[range(row.added_p50_ms!, 1), range(row.p99_ms!, 1), `${row.failed} of ${row.requests}`],
    ...[bookedCell(row), when(row)],
  ];
}

const when = ({ at, load }: Row) =>
  `${at.slice(0, 16)}Z${load ? `, ${load.map((one) => one.toFixed(0)).join(" to ")}` : ""}`;

function bookedCell({ booked }: Row): string {
  if (!booked || booked.found === null) return "cannot be asked";
  const share = booked.found / booked.wanted;
  return share === 1 ? "all" : `${(share * 100).toFixed(share > 0.995 && share < 1.005 ? 2 : 0)} %`;
}

const range = ({ least, most }: Range, digits: number) => `${least.toFixed(digits)} to ${most.toFixed(digits)}`;

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}
