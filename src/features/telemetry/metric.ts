/**
 * TELEMETRY: what a node reports about itself: metrics, and traces if they are configured. Never content, and never a
 * key. This file defines a metric, and how many values each label may have. Pure.
 */

import { faultCatalogue } from "../../core/inference/fault.ts";
import { losses } from "../../core/protocol/codec.ts";
import { meteredOperations } from "../../core/store/ledger.ts";

/**
 * The values that a label may have: those of a list; or any, up to this number of them. Further ones are counted as
 * `other`.
 */
export type LabelBound = readonly string[] | number;

export interface MetricRow {
  type: "counter" | "gauge" | "histogram";
  help: string;
  labels?: Record<string, LabelBound>;
  /** The upper bounds of a histogram's buckets, ascending. */
  buckets?: readonly number[];
  /** How the values of several workers are combined: the sum (the default), the largest, or each worker's own. */
  across?: Across;
  /** Whether the metric's observations name a traced request (exemplars), for scrapers that understand OpenMetrics. */
  hasExemplars?: boolean;
}

export type Across = "sum" | "max" | "worker";

export type MetricTable = Record<string, MetricRow>;

export const other = "other";

export function boundOf(bound: LabelBound): number {
  return typeof bound === "number" ? bound + 1 : bound.length;
}

const codes = Object.keys(faultCatalogue);
const statuses = [...new Set(Object.values(faultCatalogue).map(({ status }) => String(status)))];

/** The values that labels of several metrics may have; the key is the label. */
export const bounds = {
  route: 64,
  status: [...new Set([...statuses, "101", "200", "204", "304", "499"])].sort(),
  /** The fault's code; empty: nothing failed. */
  code: ["", ...codes],
  operation: meteredOperations,
  /** Public model ids. The largest catalog has this many, and a reload may bring others. */
  model: 2000,
  /** The upstream's name; empty if clients can read the metric. */
  upstream: 512,
  /** The current addresses of host names that are resolved at intervals. */
  replica: 512,
  loss: losses,
  attempt: [
    ...["answered", "empty", "abandoned", "unreachable", "stale", "broken", "timeout", "busy", "failed"],
    ...["refused", "rejected", "too_long", "malformed"],
  ],
  routeState: ["closed", "crowded", "open", "half-open", "resting", "down", "unresolved", "drained"],
  tokens: ["input", "cached_input", "cache_write", "output"],
  outcome: ["completed", "cancelled", "failed", "refused"],
  store: ["postgres", "embedded", "redis"],
} as const;

/** Buckets in seconds, from the duration of a probe to that of the longest answers. */
export const long_s = [0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600] as const;
/** Buckets for durations that are milliseconds when all is well, and seconds when it is not. */
export const short_s = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10] as const;
