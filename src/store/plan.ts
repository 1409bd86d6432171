import type { Repeat, Repeated } from "./page.ts";

/** The limits of an organization. Null does not limit. */
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

/** The plan that stands in where an organization has none and only reads. */
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

/** A plan as an administrator sees it. */
export interface KnownPlan extends Plan {
  /** `file`: sluice.yaml or the defaults, where alone it can be changed. `management`: made at run time. */
  source: "file" | "management";
  /** Rises with each change. */
  version: number;
  /** When these limits came into force; null: not yet. */
  changedAt: Date | null;
}

export type PlanLimits = Omit<Plan, "name">;

/** Another change came first, and is what would be overwritten. */
export interface StalePlan {
  stalePlan: KnownPlan;
}

/** Plans that are made at run time (docs/design/usage.md, Plans that change). Each act is one entry of the audit log. */
export interface PlanAdministration {
  /** All that are in force, in the order of their names. */
  listPlans(): Promise<KnownPlan[]>;
  createPlan(plan: Plan, actor: string, repeat?: Repeat | undefined): Promise<KnownPlan | KnownName | Repeated>;
  /** Changes the limits that are named. With a `version`, the plan must still have it. */
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

/** The name stands there already. */
export interface KnownName {
  standsIn: KnownPlan["source"];
}

/**
 * The plans in force, the same on every node, from which growth and settlement take their limits
 * (docs/design/usage.md, Plans that change). A thrown error is an outage.
 */
export interface PlanStore {
  inForce(): Promise<Plan[]>;
  /**
   * Puts a file's plans in the place of those of the file before, unless they are of a file that was changed later.
   * `fileAge_ms`: how long ago it was changed; null: there is no file, and any file comes before. A file that names
   * plans that were made at run time changes nothing.
   */
  publish(
    plans: readonly Plan[],
    fileAge_ms: number | null,
  ): Promise<"published" | "same" | "older" | { taken: string[] }>;
  /** Returns those of the names that plans made at run time have. */
  taken(names: readonly string[]): Promise<string[]>;
}

/** The limits that nodes follow while requests run (docs/design/usage.md, Limits that change). A thrown error is an outage. */
export interface LimitStore extends Pick<PlanStore, "inForce"> {
  /** The changes of limits after the one of this number; null: from now on. */
  changes(since: number | null): Promise<ChangedLimits>;
  /** Calls `changed` when some did, on every node, and when that may have gone by unheard. Answers how to stop. */
  listen(changed: () => void): Promise<() => Promise<void>>;
}

export interface ChangedLimits {
  /** The last change's. */
  number: number;
  /** Ids of organizations, teams and keys; null: anybody's may have. */
  subjects: readonly string[] | null;
}
