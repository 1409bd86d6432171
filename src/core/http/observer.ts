/**
 * THE SEAM OF OBSERVERS: the interface by which metrics and traces are added. They are called at the end of requests,
 * and for refusals and decisions.
 */

export interface Observer {
  request(ended: EndedRequest): void;
  /** Called when a credential was refused, with the fault's code. */
  unauthenticated(code: string): void;
  shed(what: Shed): void;
  /**
   * Called with the decision about one inference request of a known caller: granted from `plan` or `extra`, or refused
   * with a fault's code.
   */
  decision(decision: "granted" | "refused", reason: string): void;
  /** All metrics as text, for /metrics. */
  render(format: Format): Promise<string>;
}

export interface EndedRequest {
  /** The path of the matched route, such as `/v1/responses/{id}`: a label of metrics. */
  route: string;
  /** The status with which the request ended, which differs from the status sent if its stream failed. */
  status: number;
  code?: string | undefined;
  seconds: number;
  traceId?: string | undefined;
}

/** The resource that is used up: the memory of the key, the node or the process, or the descriptors. */
export type Shed = "key" | "node" | "process" | "descriptors";

/** The formats of metrics: Prometheus' text, or OpenMetrics with exemplars. */
export type Format = "prometheus" | "openmetrics";

/** A metric with its values. A copy may be sent to another process. */
export interface Told {
  name: string;
  help: string;
  type: string;
  values: ToldValue[];
}

export interface ToldValue {
  /** The name of the histogram, whose buckets, sum and count each have a name of their own. */
  metricName?: string;
  labels: Record<string, string | number>;
  value: number;
  exemplar?: Exemplar | undefined;
}

/** The last traced request that was observed in a bucket. */
export interface Exemplar {
  labelSet: { trace_id: string };
  value: number;
  /** The time of the observation, in seconds since the epoch. */
  timestamp: number;
}
