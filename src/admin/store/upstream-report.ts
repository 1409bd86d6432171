/** How engines answered in a span of time, by the records of the requests themselves. */

export interface UpstreamQuery {
  /** Half-open, by the admission of the requests. */
  from: Date;
  to: Date;
  /** Only requests that this upstream was asked for last; absent: of all upstreams. */
  upstream?: string | undefined;
  model?: string | undefined;
  /** Only requests of this organization; absent: of all. */
  organizationId?: string | undefined;
}

/** Requests that have ended. Times are those within which half of them, and 95 %, had it; null if none had. */
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
  /** The instant of which it tells. */
  at: Date;
  total: UpstreamMeasures;
  /** Hours with a request, the earliest first. */
  hours: (UpstreamMeasures & { startsAt: Date })[];
  /** By the upstream that was asked last, by name; null: none was. */
  upstreams: (UpstreamMeasures & { upstream: string | null })[];
  /** Requests that failed, by the error that their clients got; the most frequent first. */
  failures: { upstream: string | null; code: string | null; requests: number }[];
  /** Attempts that another attempt followed, by what came of them. */
  followed: { upstream: string; outcome: string; attempts: number }[];
}

export interface UpstreamReports {
  reportUpstreams(query: UpstreamQuery): Promise<UpstreamReport>;
}
