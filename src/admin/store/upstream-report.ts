/** Reports of how engines answered in a span of time, computed from the records of requests. */

export interface UpstreamQuery {
  /** The report covers the requests that were admitted at `from` or later, and before `to`. */
  from: Date;
  to: Date;
  /** Only requests for which this upstream was asked last; absent: requests of all upstreams. */
  upstream?: string | undefined;
  model?: string | undefined;
  /** Only requests of this organization; absent: of all organizations. */
  organizationId?: string | undefined;
}

/**
 * Measures of requests that have ended. The times are percentiles: within this time, half of the requests (P50) or 95 %
 * of them (P95) had the first part of their answer, or had ended. Null if no request had.
 */
export interface UpstreamMeasures {
  requests: number;
  failed: number;
  cancelled: number;
  firstPartP50_ms: number | null;
  firstPartP95_ms: number | null;
  durationP50_ms: number | null;
  durationP95_ms: number | null;
}

export interface UpstreamReport {
  /** The instant of the report, by the store's clock. */
  at: Date;
  total: UpstreamMeasures;
  /** The measures of each hour in which there were requests, the earliest hour first. */
  hours: (UpstreamMeasures & { startsAt: Date })[];
  /** The measures by the upstream that was asked last, in the order of names; null: no upstream was asked. */
  upstreams: (UpstreamMeasures & { upstream: string | null })[];
  /** Requests that failed, by the error that their clients got; the most frequent first. */
  failures: { upstream: string | null; code: string | null; requests: number }[];
  /** Attempts after which another attempt was made, by their outcome. */
  followed: { upstream: string; outcome: string; attempts: number }[];
}

export interface UpstreamReports {
  reportUpstreams(query: UpstreamQuery): Promise<UpstreamReport>;
}
