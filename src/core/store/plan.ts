/** The limits of an organization. Null means no limit. */
export interface Plan {
  name: string;
  /** The limits of the usage windows, in nanos of the currency. */
  session: number | null;
  week: number | null;
  month: number | null;
  requestsPerMinute: number | null;
  tokensPerMinute: number | null;
  concurrentRequests: number | null;
}

/** Stands in for the plan when the usage of an organization without a plan is read. */
export const noLimits: Plan = Object.freeze({
  name: "",
  session: null,
  week: null,
  month: null,
  requestsPerMinute: null,
  tokensPerMinute: null,
  concurrentRequests: null,
});

export type PlanLimits = Omit<Plan, "name">;

/**
 * The limits whose changes nodes apply while requests run (docs/design/usage.md, Limits that change). A thrown error is
 * an outage.
 */
export interface LimitStore {
  /** The plans in force, the same on every node. */
  inForce(): Promise<Plan[]>;
  /**
   * The changes of limits after the change with this number, and the raises (temporary increases of limits) that ended
   * since `from`, an instant of the store's clock. `since` null: only changes from now on.
   */
  changes(since: number | null, from?: Date | null): Promise<ChangedLimits>;
  /**
   * Calls `changed` after a change on any node, and whenever a change may have been missed. Resolves with a function
   * that ends the calls.
   */
  listen(changed: () => void): Promise<() => Promise<void>>;
}

export interface ChangedLimits {
  number: number;
  /** The store's clock at the reading. */
  at: Date;
  /** The time until the next raise (a temporary increase of a limit) ends; null: no raise is in force. */
  nextEnd_ms: number | null;
  /** The ids of the organizations, teams and keys whose limits changed; null: all limits may have changed. */
  subjects: readonly string[] | null;
}
