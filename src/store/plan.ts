/** What an organization may use. A limit that is null does not limit. */
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

/**
 * The plans in force, the same on every node, from which growth and settlement take their limits
 * (docs/design/usage.md, Plans that change). A thrown error is an outage.
 */
export interface PlanStore {
  inForce(): Promise<Plan[]>;
  /**
   * Puts a file's plans in the place of those in force, unless they are of a file that was changed later.
   * `fileAge_ms`: how long ago it was changed; null: there is no file, and any file comes before.
   */
  publish(plans: readonly Plan[], fileAge_ms: number | null): Promise<"published" | "same" | "older">;
  /** Calls `changed` when plans were published, on every node, and when that may have gone by unheard. Answers how to stop. */
  listen(changed: () => void): Promise<() => Promise<void>>;
}
