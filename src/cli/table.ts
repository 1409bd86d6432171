/** Tables for people: no borders, as wide as the screen at most; where that cannot be, one record below the other. */
import Table from "cli-table3";
import { painted, type Terminal } from "./terminal.ts";

export interface Column<Row> {
  head: string;
  cell: (row: Row) => string;
  /** May be broken over several lines when the screen is narrow; ids and dates are not, so that they can be copied. */
  breaks?: boolean;
  /** Left out where the screen is too narrow, the rightmost first: `show` and `--json` have it. */
  optional?: boolean;
}

const gap = 2;
/** A column is not made narrower than this by breaking. */
const column_chars_min = 12;

/** The rows as lines that end with a line break. */
export function table<Row>(terminal: Terminal, columns: readonly Column<Row>[], rows: readonly Row[]): string {
  for (let shown = columns; ; ) {
    const cells = cellsOf(shown, rows);
    const widths = fitted(shown, cells, terminal.width);
    if (widths) return grid(terminal, shown, cells, widths);
    const last = shown.findLastIndex((column) => column.optional);
    if (last < 0) return records(terminal, columns, cellsOf(columns, rows));
    shown = shown.toSpliced(last, 1);
  }
}

function cellsOf<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string[][] {
  return rows.map((row) => columns.map((column) => printable(column.cell(row))));
}

function grid<Row>(
  terminal: Terminal,
  columns: readonly Column<Row>[],
  cells: string[][],
  widths: readonly number[],
): string {
  const lines = new Table({
    head: columns.map((column) => painted(terminal, "bold", column.head)),
    colWidths: widths.map((width) => width + gap),
    chars: noBorders,
    style: { head: [], border: [], "padding-left": 0, "padding-right": gap, compact: true },
  });
  lines.push(...cells.map((row) => row.map((cell, at) => Bun.wrapAnsi(cell, widths[at]!, { hard: true }))));
  return `${lines.toString().replace(/[ \t]+$/gm, "")}\n`;
}

/** One thing, a line per fact; facts without a value are left out. */
export function facts(terminal: Terminal, entries: readonly (readonly [string, string | null])[]): string {
  const known = entries.filter((entry): entry is readonly [string, string] => entry[1] !== null);
  const width = Math.max(0, ...known.map(([name]) => name.length));
  return known
    .map(([name, value]) => `${painted(terminal, "dim", name.padEnd(width + gap))}${printable(value)}\n`)
    .join("");
}

/** 1,000,000 */
export function grouped(value: number): string {
  return value.toLocaleString("en-US");
}

/** What a person reads as an instant: to the second, UTC. */
export function instant(at: Date | null): string | null {
  return at ? `${at.toISOString().slice(0, 19).replace("T", " ")} UTC` : null;
}

/** The same without the zone, for a column whose head says it, and without seconds. */
export function minute(at: Date | null): string | null {
  return at ? at.toISOString().slice(0, 16).replace("T", " ") : null;
}

/** Widths that fit, or null when even breaking does not help. */
function fitted<Row>(columns: readonly Column<Row>[], cells: string[][], screen: number | null): number[] | null {
  const widths = columns.map((column, at) =>
    Math.max(Bun.stringWidth(column.head), ...cells.map((row) => Bun.stringWidth(row[at]!))),
  );
  const total = () => widths.reduce((sum, width) => sum + width, gap * (widths.length - 1));
  while (screen !== null && total() > screen) {
    const [widest] = [...widths.keys()]
      .filter((at) => columns[at]!.breaks && widths[at]! > column_chars_min)
      .sort((a, b) => widths[b]! - widths[a]!);
    if (widest === undefined) return null;
    widths[widest]!--;
  }
  return widths;
}

function records<Row>(terminal: Terminal, columns: readonly Column<Row>[], cells: string[][]): string {
  return cells
    .map((row) =>
      facts(
        terminal,
        columns.map((column, at) => [column.head, row[at]!]),
      ),
    )
    .join("\n");
}

/** Names come from people: nothing in them may move the cursor or colour the screen. */
function printable(text: string): string {
  return text.replace(/[\p{Cc}\u2028\u2029]/gu, "?");
}

const noBorders = {
  ...{ top: "", "top-mid": "", "top-left": "", "top-right": "" },
  ...{ bottom: "", "bottom-mid": "", "bottom-left": "", "bottom-right": "" },
  ...{ left: "", "left-mid": "", mid: "", "mid-mid": "", right: "", "right-mid": "", middle: "" },
};
