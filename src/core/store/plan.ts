import type { Repeat, Repeated } from "./page.ts";

/** The limits of an organization. Null means no limit. */
export interface Plan {
  name: string;
  /** Micro-units in a window. */
  session: number | null;
  week: number | null;
  month: number | null;
  requestsPerMinute: number | null;
  tokensPerMinute: number | null;
  concurrentRequests: number | null;
}

/** The limits with which the usage of an organization without a plan is read. */
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

/** A plan as an administrator sees it. */
export interface KnownPlan extends Plan {
  /** `file`: from sluice.yaml or the defaults, and only changed there. `management`: created at run time. */
  source: "file" | "management";
  /** Rises with each change. */
  version: number;
  /** When these limits came into force; null: not yet. */
  changedAt: Date | null;
}

export type PlanLimits = Omit<Plan, "name">;

/** Another change came first, and would be overwritten. */
export interface StalePlan {
  stalePlan: KnownPlan;
}

/**
 * Plans that are created at run time (docs/design/usage.md, Plans that change). Each act is one entry of the audit log.
 */
export interface PlanAdministration {
  /** All plans in force, in the order of their names. */
  listPlans(): Promise<KnownPlan[]>;
  createPlan(plan: Plan, actor: string, repeat?: Repeat | undefined): Promise<KnownPlan | KnownName | Repeated>;
  /** Changes the given limits. With a `version`, the plan must still have it. */
  updatePlan(
    name: string,
    changes: Partial<PlanLimits>,
    actor: string,
    version: number | null,
  ): Promise<KnownPlan | StalePlan | "of_file" | null>;
  removePlan(
    name: string,
    actor: string,
    version: number | null,
  ): Promise<KnownPlan | StalePlan | "of_file" | PlanUse | null>;
}

/** The name is taken: a plan of this source has it. */
export interface KnownName {
  standsIn: KnownPlan["source"];
}

/**
 * The plans in force, the same on every node, from which growth and settlement take their limits (docs/design/usage.md,
 * Plans that change). A thrown error is an outage.
 */
export interface PlanStore {
  inForce(): Promise<Plan[]>;
  /**
   * Replaces the plans of the earlier file by those of this one, unless the earlier file was changed later.
   * `fileAge_ms`: how long ago it was changed; null: there is no file, and any file takes precedence. A file that names
   * plans that were created at run time changes nothing.
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
   * The changes of limits after the one with this number, and the raises that have ended after `from`, an instant of the
   * store's clock; null: from now on.
   */
  changes(since: number | null, from?: Date | null): Promise<ChangedLimits>;
  /** Calls `changed` after a change on any node, and when one may have been missed. Returns how to stop. */
  listen(changed: () => void): Promise<() => Promise<void>>;
}

export interface ChangedLimits {
  /** The number of the last change. */
  number: number;
  /** The store's clock. */
  at: Date;
  /** How long it is until the next raise ends; null: none is in force. */
  nextEnd_ms: number | null;
  /** Ids of organizations, teams and keys; null: any of them may have changed. */
  subjects: readonly string[] | null;
}
