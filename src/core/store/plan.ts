/** The limits of an organization. Null means no limit. */
export interface Plan {
  name: string;
  /** Nanos of the currency in a window. */
  session: number | null;
  week: number | null;
  month: number | null;
  requestsPerMinute: number | null;
  tokensPerMinute: number | null;
  concurrentRequests: number | null;
}

/** The plan that stands in for none, when the usage of an organization without a plan is read. */
export const noLimits: Plan = Object.freeze({
  name: "",
  session: null,
  week: null,
  month: null,
  requestsPerMinute: null,
  tokensPerMinute: null,
  concurrentRequests: null,
});

/** The number of organizations on a plan. */
export interface PlanUse {
  plan: string;
  organizations: number;
  /** The first organizations, in alphabetical order. */
  slugs: string[];
}

export type PlanLimits = Omit<Plan, "name">;

/**
 * The plans in force, the same on every node, from which growth and settlement take their limits (docs/design/usage.md,
 * Plans that change). A thrown error is an outage.
 */
export interface PlanStore {
  inForce(): Promise<Plan[]>;
  /**
   * Replaces the plans of the earlier file by those of this one, unless the earlier file was changed later.
   * `fileAge_ms`: how long ago the file was changed; null: there is no file, and any file takes precedence. Changes
   * nothing if the file names plans that were created at run time.
   */
  publish(
    plans: readonly Plan[],
    fileAge_ms: number | null,
  ): Promise<"published" | "same" | "older" | { taken: string[] }>;
  /** Returns the names that belong to plans created at run time. */
  taken(names: readonly string[]): Promise<string[]>;
}

/**
 * The limits that nodes follow while requests run (docs/design/usage.md, Limits that change). A thrown error is an
 * outage.
 */
export interface LimitStore extends Pick<PlanStore, "inForce"> {
  /**
   * The changes of limits since the one with this number, and the raises that ended since `from`, an instant of the
   * store's clock; null: only changes from now on.
   */
  changes(since: number | null, from?: Date | null): Promise<ChangedLimits>;
  /**
   * Calls `changed` after a change on any node, and if one may have been missed. Resolves with a function that stops
   * this.
   */
  listen(changed: () => void): Promise<() => Promise<void>>;
}

export interface ChangedLimits {
  /** The number of the last change. */
  number: number;
  /** The store's clock at the reading. */
  at: Date;
  /** The time until the next raise ends; null: none is in force. */
  nextEnd_ms: number | null;
  /** The ids of the organizations, teams and keys whose limits changed; null: any may have. */
  subjects: readonly string[] | null;
}
