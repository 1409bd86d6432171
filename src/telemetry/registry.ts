/** The table's metrics as prom-client has them: in Prometheus' text format, and as OpenMetrics with exemplars. */
import { Counter, Gauge, Histogram, type MetricConfiguration, Registry, type RegistryContentType } from "prom-client";
import { type LabelBound, type MetricRow, other } from "./metric.ts";
import { type LabelsOf, type MetricName, type NameOf, table } from "./table.ts";

type Labels = Record<string, string>;

/** What is read when metrics are asked for: one value, or one for each set of labels. */
export type Reading<Name extends MetricName> = number | Iterable<readonly [LabelsOf<Name>, number]>;

export interface Instruments {
  inc<Name extends NameOf<"counter">>(name: Name, labels: LabelsOf<Name>, by?: number): void;
  /** `traceId`: of the request, where it is traced. */
  observe<Name extends NameOf<"histogram">>(name: Name, labels: LabelsOf<Name>, value: number, traceId?: string): void;
  /** Who tells the value of a gauge, or of a counter that counts elsewhere. */
  read<Name extends NameOf<"gauge" | "counter">>(name: Name, read: () => Reading<Name>): void;
  render(format: Format): Promise<string>;
  /** The same as values, for a node of several workers to put together (merged.ts). */
  values(): Promise<Told[]>;
}

/** A metric with its values, as prom-client has them. A copy may travel to another process. */
export interface Told {
  name: string;
  help: string;
  type: string;
  values: ToldValue[];
}

export interface ToldValue {
  value: number;
  labels: Record<string, string | number>;
  /** Of a histogram: of its buckets, sum and count. */
  metricName?: string;
  exemplar?: unknown;
}

export type Format = "prometheus" | "openmetrics";

export const contentTypes: Record<Format, string> = {
  prometheus: "text/plain; version=0.0.4; charset=utf-8",
  openmetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8",
};

type Instrument = Counter | Gauge | Histogram;

/** What was counted by one set of labels. prom-client would put their names and values together anew for each count. */
interface Cell {
  labels: Labels;
  value: number;
}

export function instruments(): Instruments {
  const registries: Record<Format, Registry<RegistryContentType>> = {
    prometheus: new Registry(),
    openmetrics: new Registry<RegistryContentType>(),
  };
  registries.openmetrics.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  const readers = new Map<string, () => Reading<MetricName>>();
  const made = new Map<string, { instrument: Instrument; cells: Cells }>();
  for (const [name, row] of Object.entries<MetricRow>(table)) {
    const cells = new Cells(row.labels ?? {});
    const read = () => readers.get(name)?.() ?? (row.type === "counter" ? cells.reading() : undefined);
    const instrument = instrumentOf(name, row, registries.openmetrics, read);
    registries.prometheus.registerMetric(instrument);
    // OpenMetrics has counters without `_total`: prom-client renames what it renders, so it gets a name of its own there.
    if (row.type === "counter") {
      registries.openmetrics.removeSingleMetric(name);
      registries.openmetrics.registerMetric(Object.create(instrument) as Instrument);
    }
    made.set(name, { cells, instrument });
  }
  return {
    inc(name, labels, by = 1) {
      if (!(by >= 0 && by < Number.POSITIVE_INFINITY)) throw new RangeError(`${name} cannot rise by ${by}`);
      made.get(name)!.cells.of(labels).value += by;
    },
    observe(name, labels, value, traceId) {
      const { instrument, cells } = made.get(name)!;
      const row: MetricRow = table[name];
      const { labels: held } = cells.of(labels);
      if (!row.hasExemplars) (instrument as Histogram).observe(held, value);
      else
        (instrument as Histogram).observe({
          labels: held,
          value,
          exemplarLabels: traceId === undefined ? (undefined as never) : { trace_id: traceId },
        });
    },
    read(name, read) {
      readers.set(name, read as () => Reading<MetricName>);
    },
    render: (format) => registries[format].metrics(),
    async values() {
      const told = (await registries.prometheus.getMetricsAsJSON()) as unknown as Told[];
      return told.map(({ name, help, type, values }) => ({ name, help, type: String(type), values }));
    },
  };
}

function instrumentOf(
  name: string,
  { type, help, labels = {}, buckets = [], hasExemplars = false }: MetricRow,
  registry: Registry<RegistryContentType>,
  read: () => Reading<MetricName> | undefined,
): Instrument {
  const common = { name, help, labelNames: Object.keys(labels), registers: [registry] } as MetricConfiguration<string>;
  if (type === "histogram") {
    return new Histogram({ ...common, buckets: [...buckets], ...(hasExemplars ? { enableExemplars: true } : {}) });
  }
  const collect = () => {
    const reading = read();
    if (reading === undefined) return;
    instrument.reset();
    // What stands there now: values of before, such as the hash of another configuration, take no place.
    const bounded = bounding(labels);
    if (typeof reading === "number") instrument.inc(reading);
    else for (const [labels, value] of reading) instrument.inc(bounded(labels), value);
  };
  const instrument = type === "counter" ? new Counter({ ...common, collect }) : new Gauge({ ...common, collect });
  return instrument;
}

/** By the values of the labels, in the order of their names. */
class Cells {
  readonly #names: readonly string[];
  readonly #bounded: (labels: Labels) => Labels;
  readonly #cells = new Map<string, Cell>();

  constructor(labels: Record<string, LabelBound>) {
    this.#names = Object.keys(labels);
    this.#bounded = bounding(labels);
  }

  of(labels: Labels): Cell {
    return this.#cells.get(this.#keyOf(labels)) ?? this.#made(this.#bounded(labels));
  }

  *reading(): Iterable<readonly [Labels, number]> {
    for (const { labels, value } of this.#cells.values()) yield [labels, value];
  }

  #made(labels: Labels): Cell {
    const key = this.#keyOf(labels);
    const cell = this.#cells.get(key) ?? { labels, value: 0 };
    this.#cells.set(key, cell);
    return cell;
  }

  #keyOf(labels: Labels): string {
    let key = "";
    for (const name of this.#names) key += `${labels[name] ?? ""}\0`;
    return key;
  }
}

/** Whoever sends what: a label has no more values than its bound says. */
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
