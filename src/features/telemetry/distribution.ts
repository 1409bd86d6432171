/** The observations in one cell of a histogram. */

import type { Exemplar, ToldValue } from "../../core/http/observer.ts";
import type { Labels } from "./cells.ts";
import type { MetricRow } from "./metric.ts";

export class Distribution {
  /** The upper bounds of the buckets, ascending. */
  readonly #bounds: readonly number[];
  readonly #hasExemplars: boolean;
  /** The count of each bucket alone (not cumulative). The last one is for values beyond all bounds. */
  readonly #counts: number[];
  readonly #exemplars: (Exemplar | undefined)[];
  #sum = 0;

  constructor({ buckets = [], hasExemplars = false }: MetricRow) {
    this.#bounds = buckets;
    this.#hasExemplars = hasExemplars;
    this.#counts = Array<number>(buckets.length + 1).fill(0);
    this.#exemplars = this.#counts.map(() => undefined);
  }

  /** Counts a value. `traceId`: the id of the request's trace, if it is traced. */
  observe(value: number, traceId?: string): void {
    let bucket = 0;
    while (bucket < this.#bounds.length && value > this.#bounds[bucket]!) bucket += 1;
    this.#counts[bucket]! += 1;
    this.#sum += value;
    if (this.#hasExemplars && traceId !== undefined)
      this.#exemplars[bucket] = { labelSet: { trace_id: traceId }, value, timestamp: Date.now() / 1000 };
  }

  get counts(): readonly number[] {
    return this.#counts;
  }

  /** The values in the form of Prometheus: for each bound the number of observations up to it, then sum and count. */
  told(name: string, labels: Labels): ToldValue[] {
    let count = 0;
    const buckets = this.#counts.map((more, bucket) => {
      count += more;
      const le = this.#bounds[bucket] ?? "+Inf";
      const exemplar = this.#exemplars[bucket];
      return { metricName: `${name}_bucket`, labels: { le, ...labels }, value: count, exemplar };
    });
    return [
      ...buckets,
      { metricName: `${name}_sum`, labels, value: this.#sum },
      { metricName: `${name}_count`, labels, value: count },
    ];
  }
}
