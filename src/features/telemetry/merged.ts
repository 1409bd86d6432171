/**
 * The metrics of a node with several workers: the reports of all workers as one text. Counters and histograms are
 * added; gauges are combined as their rows say (`across`). The counts of workers that have ended are included. Without
 * them a sum would fall: Prometheus would take that for a restart of the node, and would count everything again.
 */

import type { Format, Told, ToldValue } from "../../core/http/observer.ts";
import type { Across, MetricRow } from "./metric.ts";
import { table } from "./table.ts";
import { metricsText } from "./text.ts";

export function merger() {
  const last = new Map<number, Told[]>();
  let departed: Told[] = [];
  return {
    /**
     * The metrics as text. `told`: the metrics of each worker; null: the worker did not answer, and its last known
     * counts are used.
     */
    text(told: ReadonlyMap<number, Told[] | null>, format: Format): Promise<string> {
      for (const [worker, metrics] of told) if (metrics) last.set(worker, metrics);
      const silent = [...told].flatMap(([worker, metrics]) => (metrics ? [] : countedBy(last.get(worker) ?? [])));
      const present = [...told].flatMap(([worker, metrics]) => (metrics ?? []).map((one) => labelled(one, worker)));
      return metricsText(together([...present, ...silent, ...departed]), format);
    },
    gone(worker: number): void {
      departed = together([...departed, ...countedBy(last.get(worker) ?? [])]);
      last.delete(worker);
    },
  };
}

function acrossOf(name: string): Across {
  const row: MetricRow | undefined = table[name as keyof typeof table];
  return row?.across ?? "sum";
}

/** The counters and histograms that are added over all workers. */
function countedBy(metrics: readonly Told[]): Told[] {
  return metrics.filter(({ name, type }) => type !== "gauge" && acrossOf(name) === "sum");
}

function labelled(metric: Told, worker: number): Told {
  if (acrossOf(metric.name) !== "worker") return metric;
  const values = metric.values.map((one) => ({ ...one, labels: { ...one.labels, worker: String(worker) } }));
  return { ...metric, values };
}

/** Each metric once, with each of its sets of labels once, in the table's order. */
function together(metrics: readonly Told[]): Told[] {
  const named = Map.groupBy(metrics, ({ name }) => name);
  return Object.keys(table).flatMap((name) => {
    const some = named.get(name);
    if (!some) return [];
    const all = some.flatMap(({ values }) => values);
    return [{ ...some[0]!, values: merged(all, acrossOf(name)) }];
  });
}

function merged(values: readonly ToldValue[], across: Across): ToldValue[] {
  const found = new Map<string, ToldValue>();
  for (const one of values) {
    const key = `${one.metricName ?? ""} ${JSON.stringify(Object.entries(one.labels).sort(byName))}`;
    const before = found.get(key);
    if (!before) found.set(key, { ...one });
    else {
      before.value = put(before.value, one.value, across);
      before.exemplar = one.exemplar ?? before.exemplar;
    }
  }
  return [...found.values()];
}

/**
 * Combines two values. NaN comes from a process that does not know the value, such as the result of a check that
 * another process makes.
 */
function put(one: number, other: number, across: Across): number {
  if (Number.isNaN(one)) return other;
  if (Number.isNaN(other)) return one;
  return across === "sum" ? one + other : Math.max(one, other);
}

function byName([one]: [string, unknown], [other]: [string, unknown]): number {
  return one < other ? -1 : 1;
}
