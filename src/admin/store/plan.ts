/** A PLAN as administrators see it, and the interface for plans that are created at run time. */
import Type from "typebox";
import { nullable, oneOf } from "../../core/protocol/shapes/contract.ts";
import type { Value } from "../../core/schema/codec.ts";
import type { Plan as PlanInForce, PlanLimits } from "../../core/store/plan.ts";
import type { Stale } from "./change.ts";
import type { Repeat, Repeated } from "./page.ts";
import { instant, limit, version } from "./shapes.ts";

/**
 * The fields of a plan that answers show in their stored form. Amounts of money are not among them: they are stored in
 * nanos and shown as decimal text.
 */
export const planFields = {
  name: Type.String({ examples: ["pro"] }),
  source: oneOf(["file", "management"], {
    description: "`file`: sluice.yaml or the defaults, where alone it can be changed. `management`: made here.",
  }),
  version: version(),
  changed_at: nullable(instant("From when on these limits count. Null: not in force yet.")),
  requests_per_minute: limit(),
  tokens_per_minute: limit(),
  concurrent_requests: limit(),
};
const Stored = Type.Object({ ...planFields, session: limit(), week: limit(), month: limit() });
export type Plan = Value<typeof Stored>;

/**
 * Plans that are created at run time (docs/design/usage.md, Plans that change). Each change adds one entry to the audit
 * log.
 */
export interface PlanAdministration {
  /** All plans in force, in the order of their names. */
  listPlans(): Promise<Plan[]>;
  createPlan(plan: PlanInForce, actor: string, repeat?: Repeat | undefined): Promise<Plan | KnownName | Repeated>;
  /** Changes the given limits of a plan. If `version` is given, the plan must still have this version. */
  updatePlan(
    name: string,
    changes: Partial<PlanLimits>,
    actor: string,
    version?: number | null,
  ): Promise<Plan | Stale<Plan> | "of_file" | null>;
  removePlan(
    name: string,
    actor: string,
    version?: number | null,
  ): Promise<Plan | Stale<Plan> | "of_file" | PlanUse | null>;
}

/** The number of organizations on a plan, and the slugs of the first few. */
export interface PlanUse {
  plan: string;
  organizations: number;
  /** The first few organizations on the plan, in alphabetical order. */
  slugs: string[];
}

/**
 * The plans in force, the same on every node. A plan's limits are also read when a running request's hold grows, and
 * when a request is settled (docs/design/usage.md, Plans that change). A thrown error is an outage.
 */
export interface PlanStore {
  inForce(): Promise<PlanInForce[]>;
  /**
   * Replaces the plans of the last published configuration file by the plans of this file, unless the published file
   * was changed later than this one. `fileAge_ms`: how long ago this file was changed; null: there is no file, so any
   * published file takes precedence. Changes nothing if the file names plans that were created at run time.
   */
  publish(
    plans: readonly PlanInForce[],
    fileAge_ms: number | null,
  ): Promise<"published" | "same" | "older" | { taken: string[] }>;
  /** Returns the names, among the given ones, that plans created at run time have. */
  taken(names: readonly string[]): Promise<string[]>;
}

/** The refusal of a new plan: a plan of this source has the name already. */
export interface KnownName {
  standsIn: Plan["source"];
}
