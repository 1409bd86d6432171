/** A plan of the catalog: what an organization may use. A limit that is null does not limit. */
export interface Plan {
  name: string;
  /** Micro-units a window. */
  session: number | null;
  week: number | null;
  month: number | null;
  requestsPerMinute: number | null;
  tokensPerMinute: number | null;
  concurrentRequests: number | null;
}
