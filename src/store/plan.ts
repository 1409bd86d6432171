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

/** What stands in where an organization has no plan and only reads. */
export const noLimits: Plan = Object.freeze({
  name: "",
  session: null,
  week: null,
  month: null,
  requestsPerMinute: null,
  tokensPerMinute: null,
  concurrentRequests: null,
});

/** How many organizations are on a plan. */
export interface PlanUse {
  plan: string;
  organizations: number;
  /** The first of them, in the order of the alphabet. */
  slugs: string[];
}
