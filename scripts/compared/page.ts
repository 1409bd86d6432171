// Writes the tables of docs/compared.md from the results of the comparisons.

import { existsSync, readFileSync } from "node:fs";
import { printed, table } from "../../bench/governed/report.ts";
import type { Report, Row } from "../../bench/governed/run.ts";
import { type Table, tables } from "./tables.ts";

export const results = "scripts/compared/results.json";
export const governed = "bench/governed/results.json";

export interface Entry {
  version: string;
  made: string;
  command: string;
  /** Additional remarks on this run. */
  note: string;
  at: string;
  host: string;
  /** The machine's one-minute load averages before and after the run. Empty if they were not recorded. */
  load: string;
  cells: Record<string, string>;
  score: number;
}

/** The results. The first key is the ID of the table, the second the name of the gateway. */
export type Results = Record<string, Record<string, Entry>>;

/** Returns the page with new tables, each between two comments that name it. */
export function pageOf(text: string, all: Results): string {
  return text.replaceAll(/(<!-- compared: (\w+) -->\n)[\s\S]*?(<!-- \/compared -->)/g, (_, begin, id, end) =>
    [begin, partOf(id, all), "\n", end].join(""),
  );
}

function partOf(id: string, all: Results): string {
  if (id === "rows") return rowsOf(all);
  if (id === "governed") return governedOf();
  const found = tables.find((one) => one.id === id);
  if (!found) throw new Error(`docs/compared.md has a table "${id}", which is no comparison`);
  // The gateways in the order of the comparison, followed by those that it no longer runs.
  const known = Object.keys(found.gateways);
  const place = (name: string) => (known.includes(name) ? known.indexOf(name) : known.length);
  const entries = Object.entries(all[id] ?? {}).sort(([one], [other]) => place(one) - place(other));
  if (entries.length === 0) return "Not run yet.";
  return `${bestOf(found, entries)}\n\n${found.isWide ? wide(entries) : narrow(entries)}`;
}

type Named = readonly [gateway: string, entry: Entry];

/** The sentence above a table, which names the best gateway and the scores of all. */
function bestOf({ best, unit }: Table, entries: readonly Named[]): string {
  const order = [...entries].sort(([, one], [, other]) =>
    best === "most" ? other.score - one.score : one.score - other.score,
  );
  const first = order.filter(([, { score }]) => score === order[0]![1].score).map(([name]) => titled(name));
  return `**Best: ${first.join(" and ")}.** ${order.map(([name, { score }]) => `${titled(name)} ${score}`).join(", ")} ${unit}.`;
}

const titles: Record<string, string> = {
  ...{ sluice: "Sluice", "sluice with continue": "Sluice with `continue`", litellm: "LiteLLM", portkey: "Portkey" },
  "any-llm": "any-llm's gateway",
};
const titled = (name: string) => titles[name] ?? name;

/** A table with a column for each gateway. Rows with the same values for all gateways are merged into one. */
function wide(entries: readonly Named[]): string {
  const names = [...new Set(entries.flatMap(([, { cells }]) => Object.keys(cells)))];
  const rows = names.map((name) => ({ name, row: entries.map(([, { cells }]) => cells[name] ?? "") }));
  const same = Map.groupBy(rows, ({ row }) => JSON.stringify(row));
  const merged = [...same.values()].map((of) => [of.map(({ name }) => name).join("; "), ...of[0]!.row]);
  return table(["", ...entries.map(([name, { version }]) => `${titled(name)} ${version}`)], merged);
}

function narrow(entries: readonly Named[]): string {
  const names = Object.keys(entries[0]![1].cells);
  return table(
    ["", ...names],
    entries.map(([name, { cells }]) => [titled(name), ...names.map((one) => cells[one] ?? "")]),
  );
}

function governedOf(): string {
  if (!existsSync(governed)) return "Not run yet.";
  const report = JSON.parse(readFileSync(governed, "utf8")) as Report;
  const counts = [...new Set(report.rows.map(({ keys }) => keys))];
  const best = counts.map((keys) => {
    const rows = report.rows.filter((row): row is Row & { in_all_us: number } => row.keys === keys && !!row.in_all_us);
    const order = rows.sort((one, other) => one.in_all_us - other.in_all_us);
    const shares = order.map(({ gateway, in_all_us }) => `${gateway} ${in_all_us.toFixed(0)}`).join(", ");
    return `**${keys} ${keys === 1 ? "key" : "keys"}: ${order[0]?.gateway ?? "nobody"} costs least.** ${shares} µs of CPU in all.`;
  });
  return `${best.join("\n\n")}\n\n${printed(report).trim()}`;
}

function rowsOf(all: Results): string {
  const entries = tables.flatMap(({ id }) =>
    Object.entries(all[id] ?? {}).map(([name, entry]) => ({ id, name, entry })),
  );
  const rows = entries.map(({ id, name, entry: { version, made, command, note, at, load } }) => [
    ...[
      id,
      `${titled(name)} ${version}`,
      `${at}Z${load ? `, load ${load}` : ""}`,
      made,
      `\`${command}\`${note ? `: ${note}` : ""}`,
    ],
  ]);
  const hosts = [...new Set(entries.map(({ entry }) => entry.host))].filter((host) => host !== "").join("; ");
  return `Host: ${hosts}.\n\n${table(["table", "gateway and version", "when", "how it was made", "command"], rows)}`;
}
