/**
 * The metrics of the table: those that are counted and observed as events happen, and those that are read for each
 * scrape.
 */

import type { Format, Told, ToldValue } from "../../core/http/observer.ts";
import { Cells } from "./cells.ts";
import { Distribution } from "./distribution.ts";
import type { MetricRow } from "./metric.ts";
import { type LabelsOf, type MetricName, type NameOf, table } from "./table.ts";
import { metricsText } from "./text.ts";

/** A value for a scrape: one number, or one for each set of labels. */
export type MetricReading<Name extends MetricName> = number | Iterable<readonly [LabelsOf<Name>, number]>;

export interface Instruments {
  inc<Name extends NameOf<"counter">>(name: Name, labels: LabelsOf<Name>, by?: number): void;
  /** Counts a value in a histogram. `traceId`: the id of the request's trace, if it is traced. */
  observe<Name extends NameOf<"histogram">>(name: Name, labels: LabelsOf<Name>, value: number, traceId?: string): void;
  /** Sets the function that reads the value of a gauge, or of a counter that is counted elsewhere. */
  read<Name extends NameOf<"gauge" | "counter">>(name: Name, read: () => MetricReading<Name>): void;
  /** The sum of a counter over all sets of label values that include these labels. */
  sum<Name extends NameOf<"counter">>(name: Name, labels?: Partial<LabelsOf<Name>>): number;
  /** The observations of a histogram in each of its buckets, over all sets of label values. */
  buckets(name: NameOf<"histogram">): Bucket[];
  render(format: Format): Promise<string>;
  /** All metrics with their values, for a node of several workers to merge (merged.ts). */
  values(): Told[];
}

export interface Bucket {
  /** The upper bound of the bucket; null: it has none. */
  upTo: number | null;
  count: number;
}

export function instruments(): Instruments {
  const rows = Object.entries<MetricRow>(table);
  const counters = new Map(rows.map(([name, row]) => [name, counts(row)]));
  const histograms = new Map(rows.map(([name, row]) => [name, new Cells(row.labels, () => new Distribution(row))]));
  const readers = new Map<string, () => MetricReading<MetricName>>();

  function valuesOf(name: string, row: MetricRow): ToldValue[] {
    if (row.type === "histogram")
      return histograms
        .get(name)!
        .all()
        .flatMap(({ labels, cell }) => cell.told(name, labels));
    const reading = readers.get(name)?.();
    const cells = reading === undefined ? counters.get(name)! : counted(row, reading);
    return cells.all().map(({ labels, cell: { value } }) => ({ labels, value }));
  }
  const values = () =>
    rows.map(([name, row]) => ({ name, help: row.help, type: row.type, values: valuesOf(name, row) }));

  return {
    inc(name, labels, by = 1) {
      if (!(by >= 0 && by < Number.POSITIVE_INFINITY)) throw new RangeError(`${name} cannot rise by ${by}`);
      counters.get(name)!.of(labels).value += by;
    },
    observe(name, labels, value, traceId) {
      if (!Number.isFinite(value)) throw new RangeError(`${name} cannot have seen ${value}`);
      histograms.get(name)!.of(labels).observe(value, traceId);
    },
    read(name, read) {
      readers.set(name, read as () => MetricReading<MetricName>);
    },
    sum(name, labels = {}) {
      const wanted = Object.entries<string>(labels as Record<string, string>);
      const cells = counters.get(name)!.all();
      const some = cells.filter((one) => wanted.every(([label, value]) => one.labels[label] === value));
      return some.reduce((sum, { cell: { value } }) => sum + value, 0);
    },
    buckets(name) {
      const { buckets = [] }: MetricRow = table[name];
      const cells = histograms.get(name)!.all();
      return [...buckets, null].map((upTo, at) => ({
        upTo,
        count: cells.reduce((sum, { cell }) => sum + cell.counts[at]!, 0),
      }));
    },
    render: (format) => metricsText(values(), format),
    values,
  };
}

function counts({ labels }: MetricRow) {
  return new Cells(labels, () => ({ value: 0 }));
}

/**
 * The values of a new reading, in cells. Values of earlier readings, such as the hash of another configuration, are
 * dropped.
 */
function counted(row: MetricRow, reading: MetricReading<MetricName>) {
  const cells = counts(row);
  for (const [labels, value] of typeof reading === "number" ? [[{}, reading] as const] : reading)
    cells.of(labels).value += value;
  return cells;
}
