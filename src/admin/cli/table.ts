/**
 * Tables for people: no borders, and no wider than the screen. If the screen is too narrow for a table, the records are
 * printed one below the other.
 */
import Table from "cli-table3";
import { plain } from "../../core/inference/plain-text.ts";
import type { Column, Facts } from "../management/command.ts";
import { painted, type Terminal } from "./terminal.ts";

const gap = 2;
/** The width below which no column is narrowed by wrapping. */
const column_chars_min = 12;

/** The rows as lines, each with a line break. */
export function table<Row>(
  terminal: Terminal,
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  now_ms = 0,
): string {
  const isNarrow = terminal.width !== null && terminal.width < narrow_max;
  const cells = rows.map((row) => columns.map((column) => cellOf(column, row, now_ms, isNarrow)));
  return grid(terminal, columns, cells) ?? records(terminal, columns, cells);
}

/** Screens narrower than this have little space for a bar. */
const narrow_max = 110;

function cellOf<Row>({ cell, bar: drawn }: Column<Row>, row: Row, now_ms: number, isNarrow: boolean): string {
  return drawn ? bar(drawn.cells[isNarrow ? 0 : 1], drawn.of(row)) : plain(cell(row, now_ms));
}

/**
 * A bar of cells: first the cells for usage, then for amounts that running requests hold, then free cells. Any usage
 * fills at least one cell.
 */
export function bar(
  cells: number,
  { used, held, limit }: { used: number; held: number; limit: number | null },
): string {
  if (limit === null) return "·".repeat(cells);
  const upTo = (nanos: number) => Math.min(cells, Math.max(nanos > 0 ? 1 : 0, Math.floor((nanos / limit) * cells)));
  const full = upTo(used);
  const taken = Math.max(full, upTo(used + held));
  return "█".repeat(full) + "▒".repeat(taken - full) + "░".repeat(cells - taken);
}

/** The table as a grid. Null if the screen is too narrow even for the columns that cannot be left out. */
function grid<Row>(terminal: Terminal, columns: readonly Column<Row>[], cells: string[][]): string | null {
  const widths = fittingWidths(columns, cells, terminal.width);
  if (!widths) {
    const last = columns.findLastIndex((column) => column.optional);
    if (last < 0) return null;
    const remaining = cells.map((row) => row.toSpliced(last, 1));
    return grid(terminal, columns.toSpliced(last, 1), remaining);
  }
  const lines = new Table({
    head: columns.map((column) => painted(terminal, "bold", column.head)),
    colWidths: widths.map((width) => width + gap),
    chars: noBorders,
    style: { head: [], border: [], "padding-left": 0, "padding-right": gap, compact: true },
  });
  lines.push(...cells.map((row) => row.map((cell, at) => Bun.wrapAnsi(cell, widths[at]!, { hard: true }))));
  return `${lines.toString().replace(/[ \t]+$/gm, "")}\n`;
}

/** The facts as text: a line for each fact that has a value. */
export function facts(terminal: Terminal, entries: Facts): string {
  const known = entries.filter((entry): entry is readonly [string, string] => entry[1] !== null);
  const width = Math.max(0, ...known.map(([name]) => name.length));
  return known
    .map(([name, value]) => `${painted(terminal, "dim", name.padEnd(width + gap))}${plain(value)}\n`)
    .join("");
}

/** Column widths with which the table fits the screen; null if it does not fit even with wrapped cells. */
function fittingWidths<Row>(
  columns: readonly Column<Row>[],
  cells: string[][],
  screen: number | null,
): number[] | null {
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
  const record = (row: string[]) => columns.map(({ head }, at) => [head, row[at]!] as const);
  return cells.map((row) => facts(terminal, record(row))).join("\n");
}

const borders = ["top", "bottom"].flatMap((side) => [side, `${side}-left`, `${side}-mid`, `${side}-right`]);
const separators = ["left", "left-mid", "mid", "mid-mid", "middle", "right", "right-mid"];
const noBorders = Object.fromEntries([...borders, ...separators].map((name) => [name, ""]));
