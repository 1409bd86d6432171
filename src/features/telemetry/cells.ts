/** The cells of one metric: for each set of label values, one cell holds the value. Their number is bounded. */
import { type LabelBound, type MetricRow, other } from "./metric.ts";

export type Labels = Record<string, string>;

/**
 * Nested maps, one level for each label, so that finding a cell needs no joined text as its key: a small request is
 * counted some twenty times.
 */
export class Cells<Cell> {
  readonly #names: readonly string[];
  readonly #bounded: (labels: Labels) => Labels;
  readonly #fresh: () => Cell;
  readonly #top: Branch<Cell> | Cell;
  readonly #all: { labels: Labels; cell: Cell }[] = [];

  constructor(labels: MetricRow["labels"] = {}, fresh: () => Cell) {
    this.#names = Object.keys(labels);
    this.#bounded = bounding(labels);
    this.#fresh = fresh;
    this.#top = this.#names.length === 0 ? this.#added({}) : new Map();
  }

  of(labels: Labels): Cell {
    let at: Branch<Cell> | Cell | undefined = this.#top;
    for (const name of this.#names) {
      at = (at as Branch<Cell>).get(labels[name]!);
      if (at === undefined) return this.#made(this.#bounded(labels));
    }
    return at as Cell;
  }

  all(): readonly { labels: Labels; cell: Cell }[] {
    return this.#all;
  }

  /** Makes the cell of these labels. If values were replaced by `other`, the cell may exist already. */
  #made(labels: Labels): Cell {
    let at = this.#top as Branch<Cell>;
    for (const [index, name] of this.#names.entries()) {
      const value = labels[name]!;
      const isLast = index === this.#names.length - 1;
      if (!at.has(value)) at.set(value, isLast ? this.#added(labels) : new Map());
      at = at.get(value) as Branch<Cell>;
    }
    return at as Cell;
  }

  #added(labels: Labels): Cell {
    const cell = this.#fresh();
    this.#all.push({ labels, cell });
    return cell;
  }
}

interface Branch<Cell> extends Map<string, Branch<Cell> | Cell> {}

/** Limits the number of values of each label: further ones become `other`. */
function bounding(labels: Record<string, LabelBound>): (labels: Labels) => Labels {
  const known = Object.entries(labels).map(([label, bound]) => ({
    label,
    values: new Set(typeof bound === "number" ? [] : bound),
    most: typeof bound === "number" ? bound : bound.length,
  }));
  return (given) => {
    const out: Labels = {};
    for (const { label, values, most } of known) {
      const value = given[label] ?? "";
      if (!values.has(value) && values.size < most) values.add(value);
      out[label] = values.has(value) ? value : other;
    }
    return out;
  };
}
